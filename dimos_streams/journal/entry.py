"""Entries of the journal, in the form in which it keeps them and the stream sends them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from dimos_streams import clock
from dimos_streams.common.json.reading import parse_json, repaired
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import JournalEntry

ENTRY_BYTES = 500
"""Memory of an entry besides its body, with what keeps it, in bytes."""


class EncodedEntry:
    """A ``JournalEntry`` in the form in which it is kept and sent, the only one that most readers need.

    ``body`` is the event's JSON, encoded once for the journal and all readers.
    """

    __slots__ = ("_event", "body", "call_id", "caller", "offset", "robot", "type")

    def __init__(
        self,
        offset: int,
        call_id: str,
        caller: str,
        type: str,
        body: bytes,
        event: ToolEvent | None = None,
        robot: str = "",
    ) -> None:
        """Create an entry; ``robot`` is given only by a fleet hub."""
        self.offset = offset
        self.call_id = call_id
        self.caller = caller
        self.type = type
        self.body = body
        self.robot = robot
        self._event = event

    @classmethod
    def of(cls, offset: int, event: ToolEvent) -> EncodedEntry:
        """The entry of an event."""
        return cls(offset, event.call_id, event.caller, event.type, encode_event(event), event, event.robot)

    @property
    def event(self) -> ToolEvent:
        """The event itself."""
        return self._event or ToolEvent(**parse_json(self.body))

    @property
    def size(self) -> int:
        """Memory that it takes without its event as an object, in bytes."""
        return len(self.body) + ENTRY_BYTES

    def forget_decoded(self) -> None:
        """Keep its JSON only, from which it is decoded each time that somebody asks for it."""
        self._event = None

    @property
    def decoded(self) -> JournalEntry:
        """The event as gateways hand it out."""
        return JournalEntry(self.offset, self.event)

    def __repr__(self) -> str:
        return f"EncodedEntry({self.offset}, {self.event!r})"


def encode_event(event: ToolEvent) -> bytes:
    """The event as one line of JSON. Never fails: what has no JSON form is repaired, or shown as text."""
    try:
        return to_json(event.to_dict(), inf_nan_mode="null")
    except PydanticSerializationError:
        return json.dumps(repaired(event.to_dict()), default=ascii).encode()


def gap_entry(
    offset: int, from_offset: int, to_offset: int, text: str, *, caller: str | None, call_id: str = ""
) -> EncodedEntry:
    """The gap that a reader gets instead of offsets that can't be had any more; it goes on behind ``offset``.

    ``call_id`` is of a call that lacks something. A reader of one call gets a gap in the name of none all the same,
    where nobody knows whether it lacks anything.
    """
    event = ToolEvent(
        utime=clock.utime(),
        call_id=call_id,
        seq=0,
        type="gap",
        module="",
        skill="",
        caller=caller or "",
        text=text,
        data={"from_offset": from_offset, "to_offset": to_offset},
    )
    return EncodedEntry.of(offset, event)


def with_data(entry: EncodedEntry, **more: Any) -> EncodedEntry:
    """An entry with further data in its event, at the same offset."""
    event = entry.event
    data: Mapping[str, Any] = {**event.data, **more}
    fields = {**event.to_dict(), "data": data}
    return EncodedEntry.of(entry.offset, ToolEvent(**fields))
