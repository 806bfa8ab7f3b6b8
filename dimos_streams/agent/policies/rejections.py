"""The calls that an operator has rejected, alone or as steps of a plan: they stay rejected for the rest of the
mission."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.policies.canonical import canonical
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.operators import ApprovalData
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.operator.plan_steps import is_plan

_MISSIONS = 1000
_CALLS = 1000
_ASKED = 1000
_STRUCK = "the operator has taken this step out of the plan"
_Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _About:
    """The part of an approval that a decision is about."""

    call: _Key
    steps: frozenset[_Key]
    """The steps of a plan, else none."""

    @classmethod
    def of(cls, view: ApprovalData) -> _About:
        """Return it of the view in an event."""
        steps = _steps(view["arguments"].get("steps")) if is_plan(view["skill"], view["module"]) else []
        keys = frozenset((step["skill"], canonical(step.get("arguments", {}))) for step in steps)
        return cls((view["skill"], canonical(view["arguments"])), keys)

    @property
    def calls(self) -> frozenset[_Key]:
        """All calls that are decided on: the one that asks, and the steps."""
        return self.steps | {self.call}


class Rejections:
    """The rejected calls of each mission; made of the agent's events, so it outlives its process.

    A mission and its sub-missions are one. An operator who approves a plan without one of its steps, or with another
    one in its place, has rejected that step. What an operator approves later is not rejected any more. If the
    arguments of a rejected approval were changed, two calls are rejected: what was asked for, and what the operator
    made of it.
    """

    def __init__(self) -> None:
        self._reasons = NewestEntries[str, NewestEntries[_Key, str]](_MISSIONS)
        self._asked = NewestEntries[str, _About](_ASKED)

    def apply(self, event: AgentEvent) -> None:
        """Take in what an event says of approvals."""
        if created := EventKind.APPROVAL_CREATED.data_of(event):
            view = created["approval"]
            self._asked[view["id"]] = _About.of(view)
        elif data := EventKind.APPROVAL_DECIDED.data_of(event):
            view = data["approval"]
            decided = _About.of(view)
            asked = self._asked.pop(view["id"], decided)
            if view["state"] == "rejected":
                self._reject(asked.calls | decided.calls, event.missions, data.get("why", ""))
            elif view["state"] == "approved":
                self._allow(decided.calls, event.missions)
                self._reject(asked.steps - decided.steps, event.missions, _STRUCK)

    def why(self, skill: str, arguments: Mapping[str, Any], missions: Iterable[str]) -> str | None:
        """The reason for which a call was rejected, empty if none was given, or None if it was not rejected."""
        key = skill, canonical(arguments)
        for root in roots(missions):
            if root in self._reasons and key in self._reasons[root]:
                return self._reasons[root][key]
        return None

    def _reject(self, keys: Iterable[_Key], missions: Iterable[str], reason: str) -> None:
        for root in roots(missions):
            calls = self._reasons.get(root, NewestEntries[_Key, str](_CALLS))
            calls.update((key, reason) for key in sorted(keys))
            self._reasons[root] = calls

    def _allow(self, keys: Iterable[_Key], missions: Iterable[str]) -> None:
        wanted = tuple(keys)
        for root in roots(missions):
            for key in wanted if root in self._reasons else ():
                self._reasons[root].pop(key, None)


def _steps(steps: Any) -> list[dict[str, Any]]:
    """The steps of a plan as its call has them; those of a record may be anything."""
    return [
        step
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(step, dict)
        and isinstance(step.get("skill"), str)
        and isinstance(step.get("arguments", {}), dict)
    ]
