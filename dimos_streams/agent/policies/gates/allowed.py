"""The gate of the skills that the config gives the agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.policies.skill_selection import SkillSelection
from dimos_streams.tool_stream.gateway import OfferedSkill


class AllowedGate:
    """Refuses calls of skills that are not in the list; they are not offered to the model either.

    A call that a skill runs as a part of its own is its author's choice, and passes, unless its caller has named it.
    No call begins that would be another skill's than the gates have looked at: its module may be started again in
    another version, or leave its calls to another module.
    """

    def __init__(
        self,
        selection: SkillSelection,
        all_named: Callable[[str], Sequence[OfferedSkill]],
    ) -> None:
        """``all_named`` returns all skills of a name: if several modules offer it, each of them has to be allowed."""
        self.selection = selection
        self._all_named = all_named

    def allowed(self, skill: OfferedSkill) -> bool:
        """Return whether the model may call a skill."""
        return all(map(self.selection.has, (skill, *self._all_named(skill.name))))

    def withheld(self, offered: Mapping[str, OfferedSkill]) -> tuple[str, ...]:
        """The names of skills that are offered to the agent, and that its config does not give it."""
        return tuple(name for name, skill in offered.items() if not self.allowed(skill))

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        return self._refusal(request) or Allow(
            request.arguments,
            request.on_duplicate,
            again=lambda arguments: self._refusal(request) or self._change(request.skill),
        )

    def _refusal(self, request: CallRequest) -> Refuse | None:
        if request.authored or self.allowed(request.skill):
            return None
        return Refuse(f"Not run: {request.skill.name!r} is none of your skills.")

    def _change(self, skill: OfferedSkill) -> Refuse | None:
        now = next(iter(self._all_named(skill.name)), skill)
        if _judged_by(now) == _judged_by(skill):
            return None
        why = "its module was started again in another version, or another module has its calls now"
        text = (
            f"Not run: {skill.name!r} has changed since the gates looked at it: {why}. Ask for it again if need be."
        )
        return Refuse(text, charged=False)


def _judged_by(skill: OfferedSkill) -> tuple[object, ...]:
    """The traits of a skill by which gates judge it, besides its name and arguments."""
    return skill.module, skill.asks, skill.may_be_motion, skill.frame
