"""The one rule for how a mission ends: facts in the order in which they come, live or out of a record, and the reason
that follows from them."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams.agent.missions.end_reasons import CALL_CANCELLED, STOPPED_BY_OPERATOR
from dimos_streams.agent.models.protocol import CALL_FAILED, NOT_UNDERSTOOD, STALE
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.family import with_parent
from dimos_streams.tool_stream.protocol.close_data import STOPPED, TO_END

_UNDONE = (CALL_FAILED, NOT_UNDERSTOOD)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFact:
    """The fact that an update or a result states about a call, as far as a mission's end depends on it."""

    failed: str = ""
    """The skill, and the text with which the call, or the attempt to begin it, has failed; empty if it has not. One
    that somebody has cancelled has not failed."""
    stopped: str = ""
    """The text of a call that an operator's stop of the robot has ended; empty for any other."""
    cancelled: str | None = None
    """The answer of ``cancelled_by_another`` for a call that was answered or has closed; None if it was neither."""


@dataclass(slots=True, eq=False)
class EndState:
    """The state of a mission, and the reason for which it ends if nothing more happens."""

    text: str = ""
    """The text of its newest turn."""
    reason: str = ""
    """The reason for which its newest turn ended, or for which it was ended early."""
    why: str = ""
    """The reason as a text for people, where it does not speak for itself."""
    ended: str = ""
    """The reason it was ended before its work was done (``cancelled``, ``aborted``, ``deadline``, …); empty if it
    was not."""
    failed_call: str = ""
    """The first of its own calls that failed, with its text; empty if none has."""
    stopped: str = ""
    """The text of a call, of it or of a sub-mission, that an operator's stop of the robot has ended; empty if there
    is none."""
    cancelled_call: str = ""
    """The newest of its calls, those of sub-missions included, and why it ended, if somebody else than the agent has
    cancelled it; else empty."""

    def end(self, reason: str, why: str = "") -> bool:
        """Note that the mission is ended early. Return False if that was so already; then the first reason stays."""
        if self.ended:
            return False
        self.ended = reason
        self.reason, self.why = reason, why
        return True

    def note_call(self, fact: CallFact, *, own: bool) -> None:
        """Note what has become of a call; one that is not the mission's ``own``, but a sub-mission's, has failed only
        there."""
        if own:
            self.failed_call = self.failed_call or fact.failed
        self.stopped = self.stopped or fact.stopped
        if fact.cancelled is not None:
            self.cancelled_call = fact.cancelled

    def note_answered(self) -> None:
        """Note that the mission's input was the answer to a question, if no turn has heard it."""
        self.reason = self.reason or "answered"

    def note_turn_end(self, text: str, reason: str, why: str, *, heard: bool) -> None:
        """Note that a turn has ended with a text, and why; ``heard`` if the mission's input was heard in that turn,
        and the reason is about it.

        A command that failed, or was not understood, stays so, and does not concern the other missions of the turn. A
        mission has not completed if an operator's stop of the robot has ended a call of it, or somebody has cancelled
        its last call, whatever the model thinks of it.
        """
        self.text = text
        if reason in _UNDONE and not (heard and reason == NOT_UNDERSTOOD):
            reason, why = (CALL_FAILED, self.failed_call) if self.failed_call else ("completed", "")
        if reason == "completed" and self.stopped:
            reason, why = STOPPED_BY_OPERATOR, self.stopped
        elif reason == "completed" and self.cancelled_call:
            reason, why = CALL_CANCELLED, self.cancelled_call
        if self.ended and self.ended != reason:
            self.reason = self.ended
        elif reason != "completed" or self.reason not in _UNDONE:
            self.reason, self.why = reason, why


def has_failed(text: str, event: ToolEvent | None, *, is_error: bool) -> bool:
    """Return whether a result says that a call, or the attempt to begin it, has failed; one that somebody has
    cancelled, or withdrawn before it began, has not."""
    return is_error and text != STALE and why_ended(event) is None


def fact_of_update(event: ToolEvent, cancelled: str) -> CallFact:
    """The fact that an update states; ``cancelled`` is from ``cancelled_by_another``."""
    failed = event.outcome not in (None, Outcome.COMPLETED) and why_ended(event) is None
    return CallFact(
        failed=f"{event.skill}: {event.text}" if failed else "",
        stopped=stopped_by(event),
        cancelled=cancelled if event.type == "close" else None,
    )


def fact_of_result(
    skill: str, text: str, event: ToolEvent | None, *, is_error: bool, began: bool, cancelled: str, ran: bool
) -> CallFact:
    """The fact that a result states. ``began`` if a call has begun, ``ran`` if the call came to its result: what is
    only said in place of one, because the turn ended or the agent was restarted, is no fact."""
    if event is None and not ran:
        return CallFact()
    return CallFact(
        failed=f"{skill}: {text}" if has_failed(text, event, is_error=is_error) else "",
        stopped=stopped_by(event),
        cancelled=cancelled if began else None,
    )


def why_ended(event: ToolEvent | None) -> str | None:
    """The reason for which somebody has ended a call that has closed with this event, whatever became of it then;
    None for any other event."""
    if event is None or event.type != "close":
        return None
    why = event.text if event.outcome is Outcome.CANCELLED else event.data.get(TO_END)
    return why if isinstance(why, str) else None


def cancelled_by_another(event: ToolEvent | None, *, by_agent: bool) -> str:
    """The call that has ended with this event because somebody else than its agent has cancelled it, and why; empty
    if none has. ``by_agent`` is True if the agent itself wanted it to end. A child that ends with its parent has been
    cancelled by nobody else."""
    why = why_ended(event)
    if event is None or why is None or by_agent:
        return ""
    ends_with = with_parent(event.call_id)
    return "" if ends_with and why.startswith(ends_with) else f"{event.skill}: {event.text}"


def stopped_by(event: ToolEvent | None) -> str:
    """The text for which an operator's stop of the robot has ended a call, as its close has it; empty for any other
    event."""
    why = why_ended(event) or ""
    return why if why.startswith(STOPPED) else ""
