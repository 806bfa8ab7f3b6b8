"""Watches an agent's models, as the agent's events tell: what they have used, and whether they fail at the moment."""

from __future__ import annotations

from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.resumption.mission_reader import spent_in
from dimos_streams.operator.messages.agent import AgentEvent, RetryView, Usage

_ENDS = frozenset({EventKind.CONTENT, EventKind.CALL_START, EventKind.ANSWER, EventKind.ERROR, EventKind.STOP})
_MAX_ERROR = 1000


class ModelWatch:
    """Follows the usage and the failing attempts of models. It takes each event once, in order."""

    def __init__(self) -> None:
        self.spent = Usage()
        """The usage of this process."""
        self.retry: RetryView | None = None
        """The newest attempt that failed; None once the model answers, or is not asked any more."""

    def apply(self, event: AgentEvent) -> None:
        """Take in an event."""
        if usage := EventKind.USAGE.data_of(event):
            self.spent += spent_in(usage)
        if retry := EventKind.RETRY.data_of(event):
            self.retry = RetryView(
                error=retry["error"][:_MAX_ERROR],
                attempt=retry["attempt"],
                attempts=retry["attempts"],
                again_utime=event.utime + round(retry["delay_s"] * 1e6),
            )
        elif event.kind in _ENDS:
            self.retry = None
