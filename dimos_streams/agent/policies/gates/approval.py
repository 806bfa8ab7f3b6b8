"""The gate that asks an operator about calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.agent.policies.approval_texts import denial
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.canonical import shown
from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.policies.gates.patterns import fits
from dimos_streams.agent.policies.gates.settings import ApprovalRule
from dimos_streams.agent.policies.skill_selection import is_meant
from dimos_streams.tool_stream.arguments.defaults import checked_arguments

_MISSING = object()


class ApprovalGate:
    """Asks by rule, or if the skill declares it; waits for the decision."""

    def __init__(self, approvals: ApprovalRegistry, rules: Sequence[ApprovalRule], *, agent: str) -> None:
        """``agent`` is the module whose config has the rules: they name skills as it sees them."""
        self._approvals = approvals
        self._rules = tuple(rules)
        self._agent = agent

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        skill = request.skill
        rule = next((each for each in self._rules if matches(each, skill.name, request.arguments, self._agent)), None)
        action = rule.action if rule is not None else ("ask" if skill.asks else "allow")
        if action == "allow":
            return Allow(request.arguments, request.on_duplicate)
        if action == "deny":
            why = rule.reason if rule is not None else ""
            return Refuse(f"Not run: {shown(skill.name, request.arguments)} is not allowed. {why}".strip())
        reason = (rule.reason or str(rule)) if rule is not None else f"{skill.name} asks before each call"
        if request.parent:
            reason = f"{reason}; call {request.parent} goes on with it"
        decision = await self._approvals.ask(
            skill.name,
            request.arguments,
            module=skill.module,
            reason=reason,
            missions=request.missions,
            check=lambda arguments: checked_arguments(skill, arguments),
        )
        if not decision.approved:
            return Refuse(denial(skill.name, request.arguments, decision))
        note = ""
        if decision.changed:
            note = f"(The operator has changed the arguments: {shown(skill.name, decision.arguments)})"
        return Allow(decision.arguments, request.on_duplicate, note=note)


def matches(rule: ApprovalRule, skill: str, arguments: Mapping[str, Any], agent: str) -> bool:
    """Return whether a rule of an agent is about such a call."""
    if not is_meant(rule.skill, agent, skill):
        return False
    given = ((pattern, _value(arguments, path)) for path, pattern in rule.arguments.items())
    return all(value is not _MISSING and fits(pattern, value) for pattern, value in given)


def _value(arguments: Mapping[str, Any], path: str) -> Any:
    value: Any = arguments
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return _MISSING
        value = value[name]
    return value
