"""The gate that asks an operator about calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dimos_streams.agent.policies.approval_texts import denial
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.canonical import shown
from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.policies.gates.matching.patterns import compares_numbers, fits, may_fit, number_in
from dimos_streams.agent.policies.gates.settings import ApprovalRule
from dimos_streams.agent.policies.skill_selection import is_meant
from dimos_streams.agent.policies.stopped_missions import StoppedMissions
from dimos_streams.tool_stream.arguments.defaults import checked_arguments
from dimos_streams.tool_stream.overtaken import overtaken

_MISSING = object()


class ApprovalGate:
    """Asks by rule, or if the skill declares it, or after a stop of the robot; waits for the decision."""

    def __init__(
        self,
        approvals: ApprovalRegistry,
        rules: Sequence[ApprovalRule],
        stopped: StoppedMissions,
        *,
        agent: str,
    ) -> None:
        """``agent`` is the module whose config has the rules: they name skills as it sees them."""
        self._approvals = approvals
        self._rules = tuple(rules)
        self._stopped = stopped
        self._agent = agent

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        skill = request.skill
        rule = next((each for each in self._rules if matches(each, skill.name, request.arguments, self._agent)), None)
        action = rule.action if rule is not None else ("ask" if skill.asks else "allow")
        if action == "deny":
            why = rule.reason if rule is not None else ""
            return Refuse(f"Not run: {shown(skill.name, request.arguments)} is not allowed. {why}".strip())
        if action == "ask":
            reason = (rule.reason or str(rule)) if rule is not None else f"{skill.name} asks before each call"
            return await self._ask(request, reason)
        if self._is_stopped(request):
            return await self._ask(request, "an operator has stopped the robot since this was asked for")
        return Allow(request.arguments, request.on_duplicate, again=self._unless_stopped(request))

    def _is_stopped(self, request: CallRequest) -> bool:
        """Return whether a stop of the robot has come since anybody has asked for what the call does."""
        return bool(_moves(request) and not request.planned and self._stopped.stops(request.missions))

    def _unless_stopped(self, request: CallRequest) -> Callable[[Mapping[str, Any]], Refuse | None]:
        """Return a last look that refuses the call if the robot is stopped before it begins, also one that was a step
        of a plan: an operator may have given it other arguments, for which the plan does not stand."""
        stops = self._stopped.stops(request.missions)

        def look(arguments: Mapping[str, Any]) -> Refuse | None:
            if not _moves(request) or self._stopped.stops(request.missions) == stops:
                return None
            return Refuse(f"Not run: {overtaken(request.skill.name, 'stop')}", charged=False)

        return look

    async def _ask(self, request: CallRequest, reason: str) -> Verdict:
        skill = request.skill
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
        return Allow(decision.arguments, request.on_duplicate, note=note, again=self._unless_stopped(request))


def _moves(request: CallRequest) -> bool:
    """Return whether a stop of the robot is about a call by itself: it may move the robot, and is no part of a call
    that has passed this gate."""
    may_move = any(each.may_move for each in (request.skill, *request.skill.shadowed))
    return may_move and not request.part_of_motion


def matches(rule: ApprovalRule, skill: str, arguments: Mapping[str, Any], agent: str) -> bool:
    """Return whether a rule of an agent is about such a call. A number that is written otherwise than in the rule, as
    in a text, is no way around one that asks or denies, and is not what another one allows."""
    if not is_meant(rule.skill, agent, skill):
        return False
    given = ((pattern, _value(arguments, path)) for path, pattern in rule.arguments.items())
    found = fits if rule.action == "allow" else may_fit
    return all(
        value is not _MISSING and found(pattern, number_in(value) if compares_numbers(pattern) else value)
        for pattern, value in given
    )


def _value(arguments: Mapping[str, Any], path: str) -> Any:
    value: Any = arguments
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return _MISSING
        value = value[name]
    return value
