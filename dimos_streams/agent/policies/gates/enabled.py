"""The gate of the skills that the operator has taken away from the model."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.errors import SkillError
from dimos_streams.skill import public_names

_MAX_DISABLED = 10_000


class EnabledGate:
    """Refuses calls of disabled skills; they are not offered to the model either. Calls that run go on."""

    def __init__(self, emit: Emit, disabled: Iterable[str], *, agent: str) -> None:
        """``agent`` is the module whose config has the ``disabled`` skills: it names them as it sees them."""
        self._emit = emit
        self._disabled = dict.fromkeys(name for skill in disabled for name in public_names(skill, agent))

    @property
    def disabled(self) -> tuple[str, ...]:
        """The names of disabled skills, in the order in which they were disabled."""
        return tuple(self._disabled)

    def enabled(self, skill: str) -> bool:
        """Return whether a skill may be used."""
        return skill not in self._disabled

    def set(self, skill: str, enabled: bool) -> bool:
        """Enable or disable a skill, also one that no module offers now; return whether that changed anything.

        Raises ``SkillError`` if as many are disabled already as there is room for.
        """
        if enabled == self.enabled(skill):
            return False
        if not enabled and len(self._disabled) >= _MAX_DISABLED:
            raise SkillError(
                f"{skill!r} can't be disabled: {len(self._disabled)} skills are disabled, and {_MAX_DISABLED} are the"
                " most; enable one first, or leave the skill out of the agent's setting `skills`"
            )
        if enabled:
            del self._disabled[skill]
        else:
            self._disabled[skill] = None
        self._emit(EventKind.SKILL_SET, (), skill=skill, enabled=enabled)
        return True

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        skill = request.skill.name
        return self._refusal(skill) or Allow(
            request.arguments, request.on_duplicate, again=lambda arguments: self._refusal(skill)
        )

    def _refusal(self, skill: str) -> Refuse | None:
        if self.enabled(skill):
            return None
        return Refuse(f"The operator has disabled {skill!r}. Do without it, or say what you need it for.")
