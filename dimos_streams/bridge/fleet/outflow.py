"""Batches out of a journal, behind an offset."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dimos_streams import __version__, clock
from dimos_streams.fleet.batches import ShippedGap, encoded_batch, encoded_event, encoded_gap
from dimos_streams.fleet.protocol import MAX_BATCH_BYTES, MAX_ENTRIES
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.catch_up import PAGE
from dimos_streams.journal.query import Query, Read
from dimos_streams.journal.tables import Identity

_HEAD = 1024
"""Maximum bytes of a batch besides its entries."""
_TRIMMED = "the robot's journal was trimmed before the hub had these events"
_REFUSED = "the hub can't take this event"
_TOO_LARGE = "the event has more bytes than a batch may have"


class JournalSource(Protocol):
    """A journal that is to be shipped."""

    @property
    def identity(self) -> Identity:
        """The identity of the journal now."""

    @property
    def resumed_at(self) -> int:
        """The newest offset that it had when it was opened."""

    @property
    def last_offset(self) -> int:
        """The newest offset now."""

    async def read(self, after: int) -> Read:
        """A page behind an offset."""

    def rename(self, begin: int) -> None:
        """Give the journal a new identity from an offset on."""


class CurrentJournal:
    """The journal that the bridge writes: its newest events out of the broadcast's ring, older ones by its pages,
    which are read in a thread and shared with other readers."""

    def __init__(self, broadcast: JournalBroadcast) -> None:
        self._broadcast = broadcast

    @property
    def identity(self) -> Identity:
        """See ``JournalSource``."""
        return self._broadcast.journal.identity

    @property
    def resumed_at(self) -> int:
        """See ``JournalSource``."""
        return self._broadcast.journal.resumed_at

    @property
    def last_offset(self) -> int:
        """See ``JournalSource``."""
        return self._broadcast.last_offset

    async def read(self, after: int) -> Read:
        """See ``JournalSource``."""
        entries = self._broadcast.entries(after, PAGE)
        if entries is None:
            return await self._broadcast.pages.page(Query(after))
        return Read(entries, entries[-1].offset if entries else after, after + 1)

    def rename(self, begin: int) -> None:
        """See ``JournalSource``."""
        self._broadcast.journal.rename(begin)


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """A batch on its way, in the form in which it is sent."""

    body: bytes
    upto: int
    """The last offset in it."""
    entries: int
    events: int
    """The number of its entries that are events, and not gaps."""
    full: bool
    """True if there is no room for one more."""


class _Piece(NamedTuple):
    """An entry of a batch."""

    json: bytes
    upto: int
    """Its last offset."""
    is_event: bool


async def next_batch(
    source: JournalSource, after: int, refused: Collection[int] = (), most: int = MAX_ENTRIES
) -> EncodedBatch | None:
    """The next batch behind an offset, of ``most`` entries as far as they may be in one; None if nothing is there, or
    if meanwhile the journal has become another one. ``refused`` are offsets of events that the hub does not take.

    Only one batch and one page are in memory.
    """
    identity = source.identity
    pieces: list[_Piece] = []
    size, at, full = _HEAD, after, False
    while not full and at < source.last_offset:
        read = await source.read(at)
        if source.identity != identity:
            return None
        before = at
        for piece in _pieces(read, at, source.last_offset, refused):
            if len(pieces) == most or size + len(piece.json) >= MAX_BATCH_BYTES:
                full = True
                break
            pieces.append(piece)
            size, at = size + len(piece.json) + 1, piece.upto
        if at == before:
            break  # the journal can't be read now
    if not pieces:
        return None
    body = encoded_batch(identity.journal_id, __version__, clock.utime(), [piece.json for piece in pieces])
    return EncodedBatch(body, at, len(pieces), sum(piece.is_event for piece in pieces), full)


def _pieces(read: Read, after: int, last: int, refused: Collection[int]) -> Iterator[_Piece]:
    """The entries of a batch: one for each event, and one for offsets that are not there."""
    at = after
    if not read.entries and at + 1 < read.first:
        yield _gap(at + 1, min(read.first - 1, last), _TRIMMED)
    for entry in read.entries:
        if entry.offset > at + 1:
            yield _gap(at + 1, entry.offset - 1, _TRIMMED)
        at = entry.offset
        json = encoded_event(at, entry.body)
        if at in refused:
            yield _gap(at, at, _REFUSED)
        elif len(json) > MAX_BATCH_BYTES - 2 * _HEAD:
            yield _gap(at, at, _TOO_LARGE)
        else:
            yield _Piece(json, at, True)


def _gap(first: int, last: int, why: str) -> _Piece:
    return _Piece(encoded_gap(ShippedGap(offset=first, to_offset=last, gap=why)), last, False)
