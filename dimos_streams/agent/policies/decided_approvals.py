"""The approvals that are decided: which decisions still hold, and how the calls ended that they let begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dimos_streams.agent.missions.end_state import cancelled_by_another, stopped_by
from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.policies.approval import Approval
from dimos_streams.agent.policies.canonical import canonical
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.family import ancestors_of

_DECIDED = 1000
_ENDS, _SHOWN_END = 100, 200


class _CallEnd(NamedTuple):
    """The end of a call, and whether somebody other than the agent has brought it about."""

    text: str = ""
    by_another: bool = False


class DecidedApprovals:
    """The newest decided approvals of an agent. A decision stops holding when somebody other than the agent ends the
    call that it let begin, and when an operator stops the robot."""

    def __init__(self) -> None:
        self._approvals = NewestEntries[str, Approval](_DECIDED)
        self._begun = NewestEntries[str, Approval](_DECIDED)
        """The approvals by the calls that they let begin, of which one may let several go on side by side."""
        self._ends = NewestEntries[str, _CallEnd](_ENDS)

    def add(self, approval: Approval) -> None:
        """Remember an approval that was just decided."""
        self._approvals[approval.id] = approval

    def get(self, id: str) -> Approval | None:
        """The one with that id, or None if it is not remembered."""
        return self._approvals.get(id)

    def holding_for(self, key: tuple[str, str, str], missions: tuple[str, ...]) -> Approval | None:
        """The newest approval of the same call of the same missions, or None if its decision holds no more."""
        for approval in reversed(self._approvals.values()):
            if approval.key == key and approval.missions == missions:
                return approval if approval.holds_again else None
        return None

    def apply(self, event: AgentEvent) -> None:
        """Take in that a call of the agent has begun."""
        if data := EventKind.CALL_OPEN.data_of(event):
            self.call_begun(data["skill"], data["arguments"], event.missions, data["call_id"])

    def call_begun(self, skill: str, arguments: Mapping[str, Any], missions: Sequence[str], call_id: str) -> None:
        """Take in that a call has begun, which may be one that was approved."""
        key = skill, canonical(arguments)
        for approval in reversed(self._approvals.values()):
            if approval.allows(key, missions):
                approval.call_id, self._begun[call_id] = call_id, approval
                self._note_end(approval, call_id)
                return

    def call_ended(self, close: ToolEvent, *, by_agent: bool) -> None:
        """Take in how a call has ended, which may become known before it is known that the call has begun. See
        ``GateState``."""
        by_another = bool(stopped_by(close) or cancelled_by_another(close, by_agent=by_agent))
        self._ends[close.call_id] = _CallEnd(f"{close.outcome}: {close.text[:_SHOWN_END]}", by_another)
        for call_id, approval in self._begun.items():
            if close.call_id in (call_id, *ancestors_of(call_id)):
                self._note_end(approval, call_id)

    def robot_stopped(self, missions: Sequence[str]) -> None:
        """Take in that an operator has stopped the robot: what was approved for these missions is asked for again.
        Approvals that are pending then are not affected: they are decided on after the stop."""
        over = set(roots(missions))
        for approval in self._approvals.values():
            approval.is_over |= approval.state == "approved" and not over.isdisjoint(roots(approval.missions))

    def _note_end(self, approval: Approval, call_id: str) -> None:
        """Note what is known of the end of a call that an approval let begin, and of those that it belongs to. The
        newest of its calls is the one that it shows."""
        if call_id == approval.call_id:
            approval.call_end = self._ends.get(call_id, _CallEnd()).text
        family = (call_id, *ancestors_of(call_id))
        approval.is_over |= any(self._ends[each].by_another for each in family if each in self._ends)
