"""Events on their way from a robot's journal to the hub, and the hub's acknowledgements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag
from pydantic_core import to_json

from dimos_streams.fleet.protocol import (
    MAX_ENTRIES,
    MAX_TEXT,
    PROTOCOL,
    Count,
    FleetMessage,
    JournalId,
    Offset,
    SoftwareVersion,
    Utime,
    Whole,
)


class ShippedEvent(FleetMessage):
    """An event at its offset in the journal. ``event`` is the journal's own JSON: the data of ``/tool_streams``."""

    offset: Offset
    event: dict[str, Any]


class ShippedGap(FleetMessage):
    """Offsets whose events the robot does not have any more, or that the hub does not take."""

    offset: Offset
    """The first of these offsets."""
    to_offset: Offset
    """The last of these offsets."""
    gap: Annotated[str, Field(max_length=MAX_TEXT)]
    """The reason, for people."""


def _kind_of(entry: object) -> str | None:
    """The kind that an entry is meant to be, by the fields that only this kind has; None for neither kind."""
    fields = entry if isinstance(entry, dict) else getattr(type(entry), "model_fields", ())
    if "event" in fields:
        return "event"
    return "gap" if "gap" in fields or "to_offset" in fields else None


Entry = Annotated[
    Annotated[ShippedEvent, Tag("event")] | Annotated[ShippedGap, Tag("gap")],
    Discriminator(
        _kind_of,
        custom_error_type="no_entry",
        custom_error_message="it is neither an event ('offset', 'event') nor a gap ('offset', 'to_offset', 'gap')",
    ),
]


class Batch(FleetMessage):
    """Body of ``POST /fleet/robots/{robot}/batches``: consecutive offsets of one journal."""

    protocol: Whole = PROTOCOL
    version: SoftwareVersion
    """The robot's version of this package."""
    sent_utime: Utime
    """The robot's clock when it sent this, µs since the Unix epoch: only shown, nothing is decided by it."""
    journal: JournalId
    """The name of one history of offsets."""
    entries: Annotated[list[Entry], Field(min_length=1, max_length=MAX_ENTRIES)]


class Position(FleetMessage):
    """The answer to ``GET /fleet/robots/{robot}/position?journal=ID``, and to a batch."""

    protocol: Whole = PROTOCOL
    version: str
    """The hub's version of this package."""
    journal: JournalId
    acknowledged: Count
    """The offset up to which nothing is to be sent any more: all from the journal's first batch on is stored for
    good, and what is before that batch's first offset counts as the robot's past and is not stored. 0 if nothing
    is."""
    wait_s: Annotated[float, Field(ge=0)] = 0.0
    """Time, in seconds, for which the robot had better collect events before its next batch; more if the hub has much
    to do."""


def encoded_event(offset: int, event: bytes) -> bytes:
    """A ``ShippedEvent`` as JSON, an entry of ``encoded_batch``; ``event`` is JSON as the journal has it."""
    return b'{"offset":%d,"event":%b}' % (offset, event)


def encoded_gap(gap: ShippedGap) -> bytes:
    """A ``ShippedGap`` as JSON, as an entry of ``encoded_batch``."""
    return to_json(gap.model_dump())


def encoded_batch(journal: str, version: str, sent_utime: int, entries: Iterable[bytes]) -> bytes:
    """A ``Batch`` of entries that are JSON already: nothing is decoded to be encoded again."""
    head = to_json({"protocol": PROTOCOL, "version": version, "sent_utime": sent_utime, "journal": journal})
    return b'%b,"entries":[%b]}' % (head[:-1], b",".join(entries))
