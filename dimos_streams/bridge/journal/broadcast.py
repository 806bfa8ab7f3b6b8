"""The broadcast of events: one ring of the newest ones and a cursor per reader, so that a reader costs a number and
no queue.

``Broadcast`` does that for any log of events, ``JournalBroadcast`` for a bridge's journal.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from dimos_streams.bridge.journal.catch_up import PAGE, PAGE_BYTES, JournalPages
from dimos_streams.bridge.journal.coalescing import coalesce
from dimos_streams.bridge.journal.entry import ENTRY_BYTES, EncodedEntry, gap_entry
from dimos_streams.bridge.journal.journal import Journal
from dimos_streams.bridge.journal.query import Query, QueryBack, Read, ReadBack

_COALESCED_BYTES = 4 * PAGE_BYTES
"""Maximum size of a page before it is coalesced, which leaves little of it, in bytes."""
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


Take = Callable[[list[EncodedEntry]], bool]
"""A function that takes new entries at once, a page at most, or returns False; they are then read like others."""


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

    def close(self) -> None:
        """Read no more. Twice is fine."""


class Broadcast:
    """Fans the events of a log out to any number of readers. Use from the loop only."""

    def __init__(self, log: OffsetLog, pages: Pages, limits: BroadcastLimits | None = None) -> None:
        self.log = log
        self.pages = pages
        self.limits = limits or BroadcastLimits()
        self.closed = False
        self.coalesced = self.gaps = self.cut = 0
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

    def publish(self, entries: list[EncodedEntry]) -> None:
        """Hand on entries that the journal has just taken."""
        if not entries:
            return
        for reader in self._readers:
            reader.offer(entries, self._last)
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
            len(self._readers), lag, events, self._ring_bytes, self.coalesced, self.gaps, self.cut
        )

    def _keep(self, entries: list[EncodedEntry]) -> None:
        ring, size = self._ring, self.limits.ring_events
        added = 0
        for entry in entries:
            while entry.offset - self._oldest >= size:
                self._drop_oldest()
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


class BroadcastReader:
    """An offset to read on from, and a filter."""

    def __init__(self, broadcast: Broadcast, query: Query, take: Take | None = None) -> None:
        self._broadcast = broadcast
        self._take = take
        self._offset = query.after
        self._query = query
        """The query as it was asked, with the offset behind which the reader began."""
        self._update = asyncio.Event()
        self._nudged = False
        self._is_waiting = False
        """True while somebody waits in ``page`` for new entries."""
        self._lag_before: int | None = None
        self.closed = False

    @property
    def offset(self) -> int:
        """The offset up to which all that was asked for has been given."""
        return self._offset

    @property
    def lag(self) -> int:
        """Number of offsets between this reader and the newest event."""
        return max(0, self._broadcast.last_offset - self._offset)

    async def page(self) -> list[EncodedEntry]:
        """Wait for the next entries. Empty after ``nudge``, and when the reader or the broadcast was closed."""
        ready = False
        while not self.closed:
            self._update.clear()
            if self._offset == self._broadcast.last_offset:
                if self._nudged:
                    break
                self._is_waiting = True
                await self._update.wait()
                ready = True
            elif not ready:
                await self._broadcast.turn()
                ready = True
            elif entries := await self._next_page():
                return entries
            else:
                ready = False  # a long search for rare events
        self._nudged = False
        return []

    def nudge(self) -> None:
        """Let ``page`` return, with nothing if there is nothing."""
        self._nudged = True
        self._wake()

    def close(self) -> None:
        """End the reader; whoever waits in ``page`` gets an empty page. Twice is fine."""
        self.closed = True
        self._take = None  # who takes entries knows this reader
        self._wake()
        self._broadcast.forget(self)

    def offer(self, entries: list[EncodedEntry], before: int) -> None:
        """Take note of new entries behind offset ``before``; the broadcast calls it. A reader that is up to date
        and wants none of them sleeps on."""
        wanted = [entry for entry in entries if self._query.wants(entry)] if self._offset == before else None
        if wanted == [] or (wanted and self._is_waiting and self._is_taken(wanted)):
            self._offset = entries[-1].offset
        else:
            self._wake()

    def _is_taken(self, page: list[EncodedEntry]) -> bool:
        is_page = len(page) == 1 or sum(len(entry.body) for entry in page) <= PAGE_BYTES
        return self._take is not None and is_page and self._take(page)

    def _wake(self) -> None:
        self._is_waiting = False
        self._update.set()

    async def _next_page(self) -> list[EncodedEntry]:
        """Find the next page in a bounded search, and move behind it. Nothing is awaited between the two."""
        lag, before = self.lag, self._lag_before
        found = self._broadcast.entries(self._offset, PAGE)
        if found is None:
            missing = self._missing(self._broadcast.first_offset)
            if missing is None:
                read = await self._broadcast.pages.page(self._query._replace(after=self._offset))
                missing = self._missing(read.first)  # trimmed while it was read
            if missing is not None:
                self._broadcast.gaps += 1
                self._lag_before = None
                return [missing]
            found, self._offset = read.entries, read.upto
        elif found:
            self._offset = found[-1].offset
            found = [entry for entry in found if self._query.wants(entry)]
        self._lag_before = lag
        # A reader that catches up is not slow, however far behind it began.
        is_slow = lag > self._broadcast.limits.coalesce_behind and before is not None and lag >= before
        page = found if len(found) <= 1 else list(_within(found, _COALESCED_BYTES if is_slow else PAGE_BYTES))
        if len(page) < len(found):
            self._offset = page[-1].offset
        if is_slow:
            coalesced = coalesce(page)
            self._broadcast.coalesced += len(page) - len(coalesced)
            return coalesced
        return page

    def _missing(self, first: int) -> EncodedEntry | None:
        """Return a gap, and move behind it, if the next offset is older than the oldest, ``first``; else None."""
        asked = self._offset + 1
        if self._offset > self._broadcast.last_offset:
            # It has read in a journal that was lost: all that is here may be new to it.
            text = f"the offsets up to {self._offset} are of another journal; this one is read from its beginning"
            asked, to_offset = first, self._offset
        elif asked < first:
            text = f"the events of offsets {asked} to {first - 1} are not kept any more"
            to_offset = first - 1
        else:
            return None
        self._offset = first - 1
        return gap_entry(self._offset, asked, to_offset, text, caller=self._query.caller, call_id=self._query.call_id)


def _within(entries: list[EncodedEntry], limit: int) -> Iterator[EncodedEntry]:
    """The first entries that have ``limit`` bytes together, at least one."""
    sizes = itertools.accumulate(len(entry.body) for entry in entries)
    for index, (entry, size) in enumerate(zip(entries, sizes, strict=True)):
        if index and size > limit:
            return
        yield entry
