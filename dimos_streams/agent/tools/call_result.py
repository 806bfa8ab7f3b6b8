"""The result of one call that the model asked for."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.missions.end_state import cancelled_by_another, has_failed
from dimos_streams.agent.models.protocol import Speaker
from dimos_streams.agent.record.event_data.calls import ResultRemarks
from dimos_streams.tool_stream.event import ToolEvent


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of one call that the model asked for, as it is shown: of a skill or of a local tool."""

    text: str
    is_error: bool = False
    call: OpenCall | None = None
    """The skill's call, or None if none was begun."""
    event: ToolEvent | None = None
    """The event that answered it, or None if none did."""
    charged: bool = True
    """True if an error counts as a failed call."""
    note: str = ""
    """A remark of the agent itself on the call, before the text."""
    speaker: Speaker = "data"
    """``operator`` if the text is what an operator has answered."""

    @property
    def failed(self) -> bool:
        """True if the call, or the attempt to begin it, has failed; one that somebody has cancelled has not."""
        return has_failed(self.text, self.event, is_error=self.is_error)

    @property
    def cancelled(self) -> str:
        """See ``cancelled_by_another``."""
        return cancelled_by_another(self.event, by_agent=self.call is not None and bool(self.call.asked_to_end))

    @property
    def remarks(self) -> ResultRemarks:
        """The remarks on it for its event."""
        found = ResultRemarks()
        if self.note:
            found["note"] = self.note
        if self.speaker != "data":
            found["speaker"] = self.speaker
        if cancelled := self.cancelled:
            found["cancelled"] = cancelled
        return found
