"""The calls that an operator has rejected, alone or as steps of a plan: they stay rejected for the rest of the
mission."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.policies.canonical import canonical
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.operators import ApprovalData
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.operator.known_names import SUBMIT_PLAN
from dimos_streams.operator.messages.agent import AgentEvent

_MISSIONS = 1000
_CALLS = 1000
_ASKED = 1000
_STRUCK = "the operator has taken this step out of the plan"
_Key: TypeAlias = tuple[str, str]


class Rejections:
    """The rejected calls of each mission; made of the agent's events, so it outlives its process.

    A mission and its sub-missions are one. Who approves a plan without one of its steps, or with another one in its
    place, has rejected that step. What an operator approves later is not rejected any more. If the arguments
    of a rejected approval were changed, two calls are rejected: what was asked for, and what the operator made of it.
    """

    def __init__(self) -> None:
        self._reasons = NewestEntries[str, NewestEntries[_Key, str]](_MISSIONS)
        self._asked = NewestEntries[str, frozenset[_Key]](_ASKED)

    def apply(self, event: AgentEvent) -> None:
        """Take in what an event says of approvals."""
        if created := EventKind.APPROVAL_CREATED.data_of(event):
            view = created["approval"]
            self._asked[view["id"]] = frozenset(_keys(view))
        elif data := EventKind.APPROVAL_DECIDED.data_of(event):
            view = data["approval"]
            asked, decided = self._asked.pop(view["id"], frozenset()), frozenset(_keys(view))
            if view["state"] == "rejected":
                self._reject(asked | decided, event.missions, data.get("why", ""))
            elif view["state"] == "approved":
                self._allow(decided, event.missions)
                if view["skill"] == SUBMIT_PLAN:
                    struck = {(skill, arguments) for skill, arguments in asked - decided if skill != SUBMIT_PLAN}
                    self._reject(struck, event.missions, _STRUCK)

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


def _keys(view: ApprovalData) -> Iterable[_Key]:
    """Yield the keys of the calls that an approval is about; a plan is about its steps, and itself."""
    yield view["skill"], canonical(view["arguments"])
    if view["skill"] == SUBMIT_PLAN:
        for step in _steps(view["arguments"].get("steps")):
            yield step["skill"], canonical(step.get("arguments", {}))


def _steps(steps: Any) -> list[dict[str, Any]]:
    """The steps of a plan as its call has them; those of a record may be anything."""
    return [
        step
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(step, dict)
        and isinstance(step.get("skill"), str)
        and isinstance(step.get("arguments", {}), dict)
    ]
