"""The report of one instance of a module on itself, which no other instance's heartbeats change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.common.json.reading import parse_json
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness.skill_fragments import PartialSkills


@dataclass(slots=True)
class InstanceReport:
    """The skills, the state and the health of one instance, as of its last heartbeat that was believed."""

    health: str = ""
    skills_version: str | None = None
    """The version of the skills that it has described; None if it has described none."""
    asked: bool = False
    """True if it was asked for skills whose version it does not name."""
    doubted: bool = False
    """True if it was said to offer other skills of a version that was known: one of both descriptions was damaged."""
    skills_text: int = 0
    """The hash of the skills' JSON."""
    skills_bytes: int = 0
    skills: tuple[SkillInfo, ...] = ()
    partial: PartialSkills = field(default_factory=PartialSkills)
    """A description of which not all parts have come."""
    refused: int = 0
    """The size of a description for which there was no room; 0 if there was."""
    state_text: int = 0
    """The hash of the text that came as its state."""
    state_json: str = ""
    """The JSON of an object, or empty. It is parsed when somebody asks for it: the objects of a thousand forged ones
    would be ten times as large."""
    token_lost_at: float = float("-inf")
    """The time on the loop's clock at which its token vanished."""
    _read: tuple[str, Mapping[str, Any]] | None = None
    """The text of a state that was asked for, and its contents."""

    @classmethod
    def after(cls, former: InstanceReport | None) -> InstanceReport:
        """Return the report of an instance that follows another: it offers the same until it says what it offers. It
        is asked for that whatever version it names: a module in another language may name one for all its starts."""
        if former is None:
            return cls()
        return cls(skills_text=former.skills_text, skills_bytes=former.skills_bytes, skills=former.skills)

    def take_skills(self, version: str, skills: tuple[SkillInfo, ...], size: int) -> None:
        """Note that the instance offers these skills, whose JSON has ``size`` bytes."""
        self.skills_version, self.skills, self.skills_bytes, self.skills_text = version, skills, size, 0
        self.partial, self.refused = PartialSkills(), 0

    def knows(self, version: str) -> bool:
        """Return whether the skills of a version are those that it is known to offer."""
        return self.skills_version == version and not self.refused

    def forget_skills(self) -> None:
        """Forget what it offers, so that it is asked."""
        self.skills_version, self.skills_text, self.skills_bytes, self.skills = None, 0, 0, ()
        self.asked = False

    @property
    def bytes(self) -> int:
        """The size of what it has reported, as JSON."""
        return self.skills_bytes + self.partial.bytes + len(self.state_json)

    def state(self) -> Mapping[str, Any]:
        """Return the state that it reports."""
        if self._read is None or self._read[0] is not self.state_json:
            self._read = self.state_json, parse_json(self.state_json) if self.state_json else {}
        return self._read[1]
