"""A module as others see it, from its heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness.instances import Instance

ALIVE_S = 1.5
"""The silence, in seconds, after which a module counts as gone, or hung if somebody says so."""


@dataclass(frozen=True, slots=True)
class ModuleView:
    """A module as its heartbeats show it."""

    name: str
    instance: str
    """The id of its instance, another one after each start of the module."""
    pid: int
    health: str
    """``"ok"``, or what is wrong: what it says of itself, or "gone: …" or "hung: …" while it is silent."""
    age_s: float
    """Seconds since its last heartbeat."""
    skills: tuple[SkillInfo, ...]
    state: Mapping[str, Any] = field(default_factory=dict)
    """The state that it reports, by topics; as of its last heartbeat."""
    host: str = ""
    started_utime: int = 0
    introduced: bool = False
    """True if it is known what skills it has."""
    rivals: tuple[Instance, ...] = ()
    """Instances that run beside each other under its name, eldest first; empty as long as there is one."""

    departed: bool = False
    """True if its process is known to have ended before its silence alone says so."""
    since: float = 0.0
    """The time on the reader's clock at which a module of this name was first heard: it orders modules, no more."""

    @property
    def current(self) -> Instance:
        """The instance that the rest is about."""
        return Instance(self.started_utime, self.instance, self.pid, self.host)

    @property
    def alive(self) -> bool:
        """True if it was heard of lately and has not departed."""
        return self.age_s <= ALIVE_S and not self.departed
