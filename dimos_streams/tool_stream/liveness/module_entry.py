"""The entry of one module in a directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.common.text import parse_json
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness.instances import Instance, Instances, listed
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S, ModuleView
from dimos_streams.tool_stream.liveness.skill_parts import PartialSkills

_REPORT_S = 1.5
"""How long somebody else's word about a module holds."""
_MAX_CONTRADICTION = 500
DEPARTED_S = 0.5
"""Whose token has vanished, and who is not heard for so long after it, has gone: two heartbeats."""
_UNDER_WAY_S = 0.1
"""A heartbeat that was sent before the token vanished may be taken so much later."""


@dataclass(slots=True)
class ModuleEntry:
    """One module, as its heartbeats and other processes' reports describe it."""

    since: float
    """When a module of this name was heard first."""
    heard: float
    health: str = ""
    skills_version: str = ""
    skills_text: int = 0
    """The hash of the skills' JSON."""
    skills_bytes: int = 0
    skills: tuple[SkillInfo, ...] = ()
    partial: PartialSkills = field(default_factory=PartialSkills)
    """A description of which not all parts have come."""
    state_text: int = 0
    """The hash of what came as its state."""
    state_json: str = ""
    """The JSON of an object, or empty. It is read when somebody asks for it: the objects of a thousand forged ones
    would be ten times as large."""
    instances: Instances = field(default_factory=Instances)
    reported_health: str = ""
    """The health that somebody else reported of it."""
    reported_at: float = float("-inf")
    token_lost_at: float = float("-inf")
    """When the token of the bound instance vanished."""
    _read: tuple[str, Mapping[str, Any]] | None = None
    """The text of a state that was asked for, and what it says."""

    @property
    def bytes(self) -> int:
        """The size of what it has reported, as JSON."""
        return self.skills_bytes + self.partial.bytes + len(self.state_json)

    def view(self, name: str, now: float) -> ModuleView:
        """The view of the module at a moment of ``clock.monotonic``."""
        rivals = self._rivals(now)
        bound = self.instances.bound
        assert bound is not None, "an entry begins with a heartbeat"
        return ModuleView(
            name,
            bound.id,
            bound.pid,
            self._health(now, rivals),
            now - self.heard,
            self.skills,
            self.state(),
            host=bound.host,
            started_utime=bound.started_utime,
            introduced=bool(self.skills_version),
            rivals=rivals,
            departed=self.departed(now),
        )

    def departed(self, now: float) -> bool:
        """Whether the bound instance has ended: its links have, and no heartbeat contradicts."""
        return self.heard <= self.token_lost_at + _UNDER_WAY_S and now - self.token_lost_at >= DEPARTED_S

    def state(self) -> Mapping[str, Any]:
        """The state that the module reports."""
        if self._read is None or self._read[0] is not self.state_json:
            self._read = self.state_json, parse_json(self.state_json) if self.state_json else {}
        return self._read[1]

    def health_at(self, now: float) -> str:
        """``ModuleView.health`` at a moment of ``clock.monotonic``."""
        return self._health(now, self._rivals(now))

    def _health(self, now: float, rivals: tuple[Instance, ...]) -> str:
        if rivals:
            return f"{len(rivals)} instances run under this name: {listed(rivals)}"[:_MAX_CONTRADICTION]
        if self.reported_at > self.heard and now - self.reported_at <= _REPORT_S:
            return self.reported_health
        if self.departed(now):
            return f"gone: its links ended {now - self.token_lost_at:.1f} s ago"
        age = now - self.heard
        return self.health if age <= ALIVE_S else f"gone: silent for {age:.1f} s"

    def _rivals(self, now: float) -> tuple[Instance, ...]:
        return tuple(self.instances.side_by_side(now, ALIVE_S))
