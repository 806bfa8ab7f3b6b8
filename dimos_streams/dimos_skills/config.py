"""The settings by which tools of a dimos server become skills."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from dimos_streams.module import ModuleConfig
from dimos_streams.skill import BASE

_EXCEPT = "!"
_PATTERN = re.compile(r"!?[\w.*?-]{1,200}")

KNOWN_STOPS: Mapping[str, str] = {
    "begin_exploration": "end_exploration",
    "follow_person": "stop_following",
    "go_to": "stop_navigation",
    "look_out_for": "stop_looking_out",
    "navigate_with_text": "stop_navigation",
    "start_environment_scan": "stop_environment_scan",
    "start_patrol": "stop_patrol",
    "start_security_patrol": "stop_security_patrol",
}
"""The tools of dimos 0.0.15 that go on, and those that end them: dimos does not say of a tool which one ends it."""
_PAIRS = (("start_", "stop_"), ("begin_", "end_"))
"""Beginnings of the names of tools that go on and of those that end them; others have ``stop_`` before the name."""


def _checked_pattern(pattern: str) -> str:
    if not _PATTERN.fullmatch(pattern):
        raise ValueError(f"{pattern!r:.100} is no name of a tool, and no pattern with * and ?, nor one behind a '!'")
    return pattern


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError(f"{url!r:.200} is no address of a server: 'http://127.0.0.1:9990/mcp' is one")
    return url


Patterns: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(_checked_pattern)], ...],
    Field(max_length=200),
]
"""Names of tools, patterns with ``*`` and ``?``, and exceptions from them behind a ``!``, in whatever order."""
_Seconds = Annotated[float, Field(gt=0.0, le=86_400.0)]


def matches(patterns: Patterns, tool: str) -> bool:
    """Return whether a tool is meant: some pattern means it, and no exception does."""
    meant = [entry for entry in patterns if fnmatch.fnmatchcase(tool, entry.removeprefix(_EXCEPT))]
    return bool(meant) and not any(entry.startswith(_EXCEPT) for entry in meant)


class DimosSkillsConfig(ModuleConfig):
    """Settings for the server, and for what its tools are to us."""

    url: Annotated[str, AfterValidator(_checked_url)] = "http://127.0.0.1:9990/mcp"
    """The address of the dimos server."""
    prefix: str = Field("dimos_", pattern="^[A-Za-z0-9_]{0,40}$")
    """The beginning of the skills' names."""
    tools: Patterns = ("*", "!agent_send")
    """The tools that become skills."""
    still: Patterns = ()
    """The tools that move nothing; every other one is taken to move the robot."""
    read_only: Patterns = ()
    """Those of the tools in `still` that change nothing anywhere."""
    streams: Patterns = ("look_out_for",)
    """The tools that go on after their answer, besides those that say so themselves."""
    stops: dict[str, str] = Field(default_factory=dict)
    """The tool that ends a tool, by that tool's name, empty for none; by default `stop_x` ends `x`."""
    resource: str = Field(BASE, pattern="^[A-Za-z0-9_]{1,40}$")
    """The resource that a tool holds if it may move the robot."""
    answer_s: _Seconds = 120.0
    """Maximum time, in seconds, for a tool to answer."""
    longest_s: _Seconds = 3600.0
    """Maximum time, in seconds, for a tool that goes on."""
    stop_s: _Seconds = 5.0
    """Maximum time, in seconds, for a tool to end when it is asked to."""
    silence_s: _Seconds = 15.0
    """Maximum time, in seconds, for a tool to be heard again after its messages were lost."""
    poll_s: _Seconds = 5.0
    """The time, in seconds, between two looks at the list of tools."""
    max_calls: int = Field(16, ge=1, le=64)
    """Maximum number of calls that run at once."""

    @model_validator(mode="after")
    def _reads_still(self) -> Self:
        """Raise ``ValueError`` for tools that change nothing and move: the second counts, so nobody means it."""
        unsure = [name for name in self.read_only if not name.startswith(_EXCEPT) and not matches(self.still, name)]
        if unsure:
            raise ValueError(f"read_only has {unsure[0]!r}, which is not in `still`: what may move changes something")
        return self

    def stop_of(self, tool: str, here: Collection[str]) -> str:
        """Return the tool among those that are here which ends another one; empty if none is known."""
        wanted = self.stops.get(tool)
        guesses = [KNOWN_STOPS.get(tool, ""), f"stop_{tool}", *(tool.replace(a, b, 1) for a, b in _PAIRS)]
        candidates = guesses if wanted is None else [wanted]
        return next((name for name in candidates if name in here and name != tool), "")

    def unmatched(self, tools: Collection[str]) -> list[str]:
        """Return what the settings name and the server does not have, each in a few words."""
        named = [(key, name) for key in ("tools", "still", "read_only") for name in getattr(self, key)]
        named += [("stops", name) for pair in self.stops.items() for name in pair if name]
        return [
            f"{key} has {name!r}, and the server no such tool"
            for key, name in named
            if not name.startswith(_EXCEPT) and not any(fnmatch.fnmatchcase(tool, name) for tool in tools)
        ]
