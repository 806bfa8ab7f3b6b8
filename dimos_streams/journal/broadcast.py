"""The broadcast of events: one ring of the newest ones and a cursor per reader, so that a reader costs a number and
no queue.

``Broadcast`` does that for any log of events, ``JournalBroadcast`` for a bridge's journal.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from dimos_streams.journal.broadcast_reader import BroadcastReader, Take
from dimos_streams.journal.catch_up import JournalPages
from dimos_streams.journal.entry import ENTRY_BYTES, EncodedEntry
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Query, QueryBack, Read, ReadBack

_FRESH_EVENTS, _FRESH_BYTES = 256, 128 * 1024
"""Number and bytes of the newest events that are kept decoded as well, for readers that keep up; that may take twenty
times their size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastLimits:
    """Bounds of a broadcast's memory, which do not depend on the number of readers."""

    ring_events: int = 8192
    ring_bytes: int = 4 * 1024 * 1024
    coalesce_behind: int = 2048
    """A reader this many offsets behind, and not catching up, gets its progress coalesced."""


@dataclass(frozen=True, slots=True)
class BroadcastStatistics:
    """Readers now, and counts since the broadcast was made."""

    readers: int
    lag: int
    """Number of offsets that the slowest reader is behind."""
    ring_events: int
    ring_bytes: int
    coalesced: int
    """Number of progress events that readers did not get because a later one stands for them."""
    gaps: int
    """Number of gap events that readers got."""
    cut: int
    """Number of readers whose connection was ended because they did not read."""


class OffsetLog(Protocol):
    """A log of events by offsets, none of which is left out."""

    @property
    def first_offset(self) -> int:
        """The oldest offset that is kept."""

    @property
    def last_offset(self) -> int:
        """The newest offset, 0 before the first event."""


class Pages(Protocol):
    """Reads what is not in memory any more."""

    async def page(self, query: Query) -> Read:
        """A page of what a query finds."""

    async def page_back(self, query: QueryBack, limit: int, max_bytes: int) -> ReadBack:
        """The page before an offset, for a reader that looks back."""

    async def may_have(self, offset: int) -> bool:
        """Return whether another process may have given an offset behind the newest one that was published."""

    def close(self) -> None:
        """Read no more. Twice is fine."""


class Broadcast:
    """Fans the events of a log out to any number of readers. Use from the loop only."""

    def __init__(self, log: OffsetLog, pages: Pages, limits: BroadcastLimits | None = None) -> None:
        self.log = log
        self.pages = pages
        self.limits = limits or BroadcastLimits()
        self.closed = False
        self.cut = 0
        self._coalesced = self._gaps = 0
        self._ring: list[EncodedEntry | None] = [None] * self.limits.ring_events
        self._ring_bytes = 0
        self._oldest, self._last = log.last_offset + 1, log.last_offset
        self._fresh: deque[EncodedEntry] = deque()
        self._fresh_bytes = 0
        self._readers: dict[BroadcastReader, None] = {}
        self._turn = asyncio.Lock()

    @property
    def last_offset(self) -> int:
        """The newest offset that was published."""
        return self._last

    @property
    def first_offset(self) -> int:
        """The oldest offset that can still be read."""
        return min(self._oldest, self.log.first_offset)

    @property
    def coalesce_behind(self) -> int:
        """See ``BroadcastLimits``."""
        return self.limits.coalesce_behind

    def publish(self, entries: list[EncodedEntry]) -> None:
        """Hand on entries that the journal has just taken."""
        if not entries:
            return
        try:
            for reader in self._readers:
                reader.offer(entries, self._last)
        finally:  # else readers would pass over their offsets
            self._keep(entries)  # behind those who wait; the others look here in their own time

    def reader(
        self,
        *,
        after: int | None = None,
        caller: str | None = None,
        call_id: str | None = None,
        robot: str | None = None,
        take: Take | None = None,
    ) -> BroadcastReader:
        """A reader of what comes behind offset ``after`` (None: from now on); close it when done.

        ``take`` gets a page of new entries while somebody waits in ``page``, who is then not woken.
        """
        reader = BroadcastReader(self, Query(self._last if after is None else after, caller, call_id, robot), take)
        if self.closed:
            reader.close()
        else:
            self._readers[reader] = None
        return reader

    def forget(self, reader: BroadcastReader) -> None:
        """Remove a reader that is being closed; ``BroadcastReader.close`` calls it."""
        self._readers.pop(reader, None)

    def close(self) -> None:
        """End all readers at once, now and in future. Twice is fine."""
        self.closed = True
        for reader in list(self._readers):
            reader.close()
        self.pages.close()

    async def older(self, query: Query) -> Read:
        """A page of what is not in the ring any more."""
        return await self.pages.page(query)

    async def may_have(self, offset: int) -> bool:
        """Return whether an offset that was not published yet is, or may be, one of the log all the same."""
        return await self.pages.may_have(offset)

    def count_gap(self) -> None:
        """Count a gap event that a reader gets."""
        self._gaps += 1

    def count_coalesced(self, count: int) -> None:
        """Count progress events that a reader does not get because a later one stands for them."""
        self._coalesced += count

    async def turn(self) -> None:
        """Wait for a turn among the readers that are behind: one page of one of them, then everybody else's turn."""
        async with self._turn:
            await asyncio.sleep(0)

    def entries(self, after: int, count: int) -> list[EncodedEntry] | None:
        """Up to ``count`` entries behind ``after`` out of the ring; None if that is not an offset in it."""
        if not self._oldest - 1 <= after <= self._last:
            return None
        offsets = range(after + 1, min(after + count, self._last) + 1)
        return [entry for offset in offsets if (entry := self._ring[offset % len(self._ring)]) is not None]

    def statistics(self) -> BroadcastStatistics:
        """The counters of the broadcast."""
        lag = max((reader.lag for reader in self._readers), default=0)
        events = self._last - self._oldest + 1
        return BroadcastStatistics(
            len(self._readers), lag, events, self._ring_bytes, self._coalesced, self._gaps, self.cut
        )

    def _keep(self, entries: list[EncodedEntry]) -> None:
        ring, size = self._ring, self.limits.ring_events
        added = 0
        for entry in entries:
            if entry.offset - self._oldest >= size:
                self._drop_before(entry.offset - size + 1)
            ring[entry.offset % size] = entry
            added += len(entry.body)
        self._last = entries[-1].offset
        self._ring_bytes += added + len(entries) * ENTRY_BYTES
        while self._ring_bytes > self.limits.ring_bytes and self._oldest < self._last:
            self._drop_oldest()
        self._fresh.extend(entries)
        self._fresh_bytes += added
        while self._fresh_bytes > _FRESH_BYTES or len(self._fresh) > _FRESH_EVENTS:
            aged = self._fresh.popleft()
            self._fresh_bytes -= len(aged.body)
            aged.forget_decoded()

    def _drop_before(self, offset: int) -> None:
        """Drop what is older than an offset. A hub may have passed over a million of them, which no event has."""
        for _ in range(min(offset - self._oldest, len(self._ring))):
            self._drop_oldest()
        self._oldest = offset

    def _drop_oldest(self) -> None:
        index = self._oldest % len(self._ring)
        entry, self._ring[index] = self._ring[index], None
        self._ring_bytes -= entry.size if entry is not None else 0
        self._oldest += 1


class JournalBroadcast(Broadcast):
    """Fans a bridge's journalled events out."""

    pages: JournalPages

    def __init__(self, journal: Journal, limits: BroadcastLimits | None = None) -> None:
        super().__init__(journal, JournalPages(journal), limits)
        self.journal = journal
