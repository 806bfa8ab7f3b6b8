"""Modules, as the heartbeats of a recording show them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.names import is_name
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S, ModuleView
from dimos_streams.tool_stream.liveness.skill_fragments import PartialSkills, fragment_in, is_fragment, skills_in

MAX_MODULES = 1000
_REPORT_US = 1_500_000
"""The time for which somebody else's report about a module counts, in µs."""
_Offer = tuple[SkillInfo, ...]


@dataclass(frozen=True, slots=True)
class _Heard:
    """The known state of one module: its newest heartbeat. Never changed, so that moments can share it."""

    status: ModuleStatus
    utime: int
    """The time at which it came, by the log."""
    skills: _Offer
    state_json: str
    state: Mapping[str, Any]
    reported: str = ""
    """The health that somebody else has reported of it."""
    reported_utime: int = 0
    """The time of that report."""


class Modules:
    """Takes heartbeats in the order of the log."""

    def __init__(self) -> None:
        self.unreadable = 0
        """The number of skills and states that can't be read."""
        self._heard: dict[str, _Heard] = {}
        self._partial: dict[str, PartialSkills] = {}
        self._offers: dict[str, _Offer] = {}
        """The lists of skills by their JSON, which a module sends again and again."""

    def copy(self) -> Modules:
        """Return a copy of the modules at this moment; what one of both takes then is not known to the other."""
        found = Modules()
        found._heard, found._offers = dict(self._heard), self._offers
        found._partial = copy.deepcopy(self._partial)
        return found

    def take(self, utime: int, status: ModuleStatus) -> None:
        """Take a heartbeat."""
        before = self._heard.get(status.module)
        if not status.instance:
            if before is not None:
                self._heard[status.module] = replace(before, reported=status.health, reported_utime=utime)
            return
        if not is_name(status.module) or (before is None and len(self._heard) >= MAX_MODULES):
            return
        skills = before.skills if before is not None else ()
        if status.skills_json:
            skills = self._skills(status) or skills
        state = before.state if before is not None and before.state_json == status.state_json else self._state(status)
        status.skills_json = ""  # it is large, and read
        self._heard[status.module] = _Heard(status, utime, skills, status.state_json, state)

    def views(self, utime: int) -> list[ModuleView]:
        """Return all modules heard of, as they are at a time of the log, by name."""
        return [_view(name, heard, utime) for name, heard in sorted(self._heard.items())]

    def agents(self) -> dict[str, _Offer]:
        """The skills of all modules, by name."""
        return {name: heard.skills for name, heard in self._heard.items()}

    def skill(self, name: str) -> SkillInfo | None:
        """A skill that some module offers, or None if none does."""
        return next((info for heard in self._heard.values() for info in heard.skills if info.name == name), None)

    def _skills(self, status: ModuleStatus) -> _Offer | None:
        text = status.skills_json
        known = self._offers.get(text)
        if known is not None:
            return known
        try:
            if is_fragment(text):
                part = fragment_in(text, self._skipped)
                partial = self._partial.setdefault(status.module, PartialSkills())
                whole = partial.add(status.skills_version, part, len(text))
                if whole is not None:
                    del self._partial[status.module]
                return whole
            found = skills_in(text, self._skipped)
        except ValueError:
            self.unreadable += 1
            return None
        if len(self._offers) < MAX_MODULES:
            self._offers[text] = found
        return found

    def _skipped(self, why: str) -> None:
        self.unreadable += 1

    def _state(self, status: ModuleStatus) -> Mapping[str, Any]:
        try:
            state = parse_json(status.state_json) if status.state_json else {}
        except ValueError:
            self.unreadable += 1
            return {}
        return state if isinstance(state, dict) else {}


def _view(name: str, heard: _Heard, utime: int) -> ModuleView:
    status, age_s = heard.status, max(0.0, (utime - heard.utime) / 1e6)
    health = status.health if age_s <= ALIVE_S else f"gone: silent for {age_s:.1f} s"
    if heard.reported_utime > heard.utime and utime - heard.reported_utime <= _REPORT_US:
        health = heard.reported
    return ModuleView(
        name,
        status.instance,
        status.pid,
        health,
        age_s,
        heard.skills,
        heard.state,
        host=status.host,
        started_utime=status.started_utime,
        introduced=bool(heard.skills),
    )
