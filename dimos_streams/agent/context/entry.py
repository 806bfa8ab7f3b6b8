"""One line of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dimos_streams.agent.models.protocol import Speaker, ToolCall
from dimos_streams.agent.models.thoughts import NO_THOUGHTS, Thoughts
from dimos_streams.operator.reporting import within
from dimos_streams.tool_stream.event import ToolEvent

Role = Literal["operator", "event", "assistant", "tool", "progress", "error", "note"]
_SHOWN_TEXT, _SHOWN_CALLS, _SHOWN_ARGUMENTS = 4000, 20, 500
_MAX_SHOWN = 36_000
"""Maximum size of an entry in bytes: with a line of text for people it fits into one event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the record. ``progress``, ``error`` and ``note`` are for people; models don't see them."""

    number: int
    """The entry's number in this process, which grows by one with each entry."""
    event_number: int = 0
    """The number of the event that has made it, which is the same after a restart; of progress, which no event makes,
    that of the newest event before it."""
    utime: int
    role: Role
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls that an ``assistant`` entry asks for."""
    thoughts: Thoughts = NO_THOUGHTS
    """What the model thought before an ``assistant`` entry."""
    finish: str = ""
    """The reason an ``assistant`` entry ends: the model's own reason, or why it was cut off."""
    tool_call_id: str = ""
    """The id of the model's call that a ``tool`` entry answers."""
    skill: str = ""
    call_id: str = ""
    """The id of the skill's call that the entry belongs to."""
    event: ToolEvent | None = None
    """The event of that call."""
    is_error: bool = False
    note: str = ""
    """A remark of the agent itself on the call that a ``tool`` entry answers, before the text."""
    speaker: Speaker = "data"
    """``operator`` if a ``tool`` entry is an operator's answer; ``task`` if the text is not an operator's."""
    missions: frozenset[str] = frozenset()
    """The missions that it is part of; empty if it concerns all."""
    begins: str = ""
    """The mission that an ``operator`` entry has begun; empty if it has begun none."""

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as operators get it, cut to what fits into one event. Of a close it has ``outcome``."""
        asked = self.tool_calls[:_SHOWN_CALLS]
        calls = [{"id": c.id, "skill": c.name, "arguments": c.arguments[:_SHOWN_ARGUMENTS]} for c in asked]
        fields: dict[str, Any] = {
            "number": self.number,
            "utime": self.utime,
            "role": self.role,
            "text": "\n".join(part for part in (self.note, self.text) if part)[:_SHOWN_TEXT],
            "tool_calls": calls,
            "finish": self.finish,
            "tool_call_id": self.tool_call_id,
            "skill": self.skill,
            "call_id": self.call_id,
            "outcome": self.event.outcome if self.event else None,
            "is_error": self.is_error,
        }
        given = {name: value for name, value in fields.items() if value or name in ("number", "text")}
        shown: dict[str, Any] = within(given, _MAX_SHOWN)
        return shown
