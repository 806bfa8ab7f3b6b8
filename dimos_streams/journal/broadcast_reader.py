"""A reader of a broadcast: an offset to read on from, and a filter."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.journal.catch_up import PAGE, PAGE_BYTES
from dimos_streams.journal.coalescing import coalesce
from dimos_streams.journal.entry import EncodedEntry, gap_entry
from dimos_streams.journal.query import Query, Read

_log = LimitedLog(logging.getLogger(__name__))

_COALESCED_BYTES = 4 * PAGE_BYTES
"""Maximum size of a page before it is coalesced, which leaves little of it, in bytes."""

Take = Callable[[list[EncodedEntry]], bool]
"""A function that takes new entries at once, a page at most, or returns False; they are then read like others."""


class ReadBroadcast(Protocol):
    """A broadcast as its readers use it."""

    @property
    def first_offset(self) -> int:
        """The oldest offset that can still be read."""

    @property
    def last_offset(self) -> int:
        """The newest offset that was published."""

    @property
    def coalesce_behind(self) -> int:
        """A reader this many offsets behind, and not catching up, gets its progress coalesced."""

    def entries(self, after: int, count: int) -> list[EncodedEntry] | None:
        """Up to ``count`` entries behind ``after`` that are in memory; None if those are not."""

    async def older(self, query: Query) -> Read:
        """A page of what is not in memory any more."""

    async def may_have(self, offset: int) -> bool:
        """Return whether an offset behind the newest one that was published is, or may be, one of the log all the
        same."""

    async def turn(self) -> None:
        """Wait for a turn among the readers that are behind."""

    def count_gap(self) -> None:
        """Count a gap event that a reader gets."""

    def count_coalesced(self, count: int) -> None:
        """Count progress events that a reader does not get because a later one stands for them."""

    def forget(self, reader: BroadcastReader) -> None:
        """Remove a reader that is being closed."""


class BroadcastReader:
    """An offset to read on from, and a filter."""

    def __init__(self, broadcast: ReadBroadcast, query: Query, take: Take | None = None) -> None:
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
            if self._offset == self._broadcast.last_offset or await self._is_ahead():
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

    async def page_within(self, seconds: float) -> list[EncodedEntry]:
        """Wait for the next entries, for ``seconds`` at most: then, or at once for 0, the page is empty if there are
        none."""
        if seconds <= 0:
            self.nudge()
            return await self.page()
        timer = asyncio.get_running_loop().call_later(seconds, self.nudge)
        try:
            return await self.page()
        finally:
            timer.cancel()

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
        if self._take is None or not is_page:
            return False
        try:
            return self._take(page)
        except Exception:  # it costs the other readers nothing; whoever waits in ``page`` gets them
            _log.exception("a reader could not take the events behind offset %d at once", self._offset)
            return False

    def _wake(self) -> None:
        self._is_waiting = False
        self._update.set()

    async def _is_ahead(self) -> bool:
        """Return whether the reader has had elsewhere what is yet to be published here."""
        return self._offset > self._broadcast.last_offset and await self._broadcast.may_have(self._offset)

    async def _next_page(self) -> list[EncodedEntry]:
        """Find the next page in a bounded search, and move behind it. Nothing is awaited between the two."""
        lag, before = self.lag, self._lag_before
        found = self._broadcast.entries(self._offset, PAGE)
        if found is None:
            missing = self._missing(self._broadcast.first_offset)
            if missing is None:
                read = await self._broadcast.older(self._query._replace(after=self._offset))
                missing = self._missing(read.first)  # trimmed while it was read
            if missing is not None:
                self._broadcast.count_gap()
                self._lag_before = None
                return [missing]
            found, self._offset = read.entries, read.upto
        else:  # there may be none: numbers that a hub's database has lost stay empty
            self._offset = min(self._offset + PAGE, self._broadcast.last_offset)
            found = [entry for entry in found if self._query.wants(entry)]
        self._lag_before = lag
        # A reader that catches up is not slow, however far behind it began.
        is_slow = lag > self._broadcast.coalesce_behind and before is not None and lag >= before
        page = found if len(found) <= 1 else list(_within(found, _COALESCED_BYTES if is_slow else PAGE_BYTES))
        if len(page) < len(found):
            self._offset = page[-1].offset
        if is_slow:
            coalesced = coalesce(page)
            self._broadcast.count_coalesced(len(page) - len(coalesced))
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
        return gap_entry(self._offset, asked, to_offset, text, caller=self._query.caller)


def _within(entries: list[EncodedEntry], limit: int) -> Iterator[EncodedEntry]:
    """The first entries that have ``limit`` bytes together, at least one."""
    sizes = itertools.accumulate(len(entry.body) for entry in entries)
    for index, (entry, size) in enumerate(zip(entries, sizes, strict=True)):
        if index and size > limit:
            return
        yield entry
