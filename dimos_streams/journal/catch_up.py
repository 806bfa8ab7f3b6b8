"""The journal's pages for readers that catch up: read in a thread, one at a time, and shared."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.threads import in_executor
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Asked, Query, QueryBack, Read, ReadBack
from dimos_streams.journal.tables import CACHE_KB

PAGE = 256
PAGE_BYTES = 32 * 1024
"""Maximum size of the events in one page, in bytes; a larger event has a page for itself."""
_SHARED_PAGES, _SHARED_BYTES = 64, 1024 * 1024

_log = LimitedLog(logging.getLogger(__name__))


FoundT = TypeVar("FoundT")
_Which = tuple[Path, int]
"""A file, by its path and the journal's number for it."""


class JournalPages:
    """Pages out of a journal. Use from one loop only; close it when done.

    A file is read in a thread, through a connection of its own: neither a slow disk nor a long search holds the loop
    up. In memory, and in virtual time, where a thread's pace must decide nothing, the journal is read at once.
    """

    def __init__(self, journal: Journal) -> None:
        self.reads = 0
        """Number of pages read, not answered from the shared cache."""
        self._journal = journal
        self._turn = asyncio.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._file = _File()
        self._shared: OrderedDict[Query, Read] = OrderedDict()
        self._shared_bytes = 0
        self._closed = False

    async def page(self, query: Query) -> Read:
        """Return a page of the entries that match a query. Readers take turns, in the order in which they came."""
        async with self._turn:
            read = self._shared_page(query)
            if read is None:
                read = await self._read(query, PAGE, PAGE_BYTES)
                self.reads += 1
                is_whole = query.after + 1 >= read.first
                if is_whole and read.entries and not self._closed:
                    self._share(query, read)
            return read

    async def page_back(self, query: QueryBack, limit: int, max_bytes: int) -> ReadBack:
        """See ``Pages``. It waits for its turn like the other readers."""
        async with self._turn:
            return await self._read(query, limit, max_bytes)

    async def may_have(self, offset: int) -> bool:
        """See ``Pages``: a journal is one process's."""
        return False

    def close(self) -> None:
        """Close the journal's file once the read that is under way has ended. Closing twice is fine."""
        self._closed = True
        self._shared.clear()
        thread, self._thread = self._thread, None
        if thread is not None:
            with contextlib.suppress(RuntimeError):  # no thread has begun, and none can: there is no file either
                thread.submit(self._file.close)
            thread.shutdown(wait=False)

    async def _read(self, query: Asked[FoundT], limit: int, max_bytes: int) -> FoundT:
        self._journal.commit_tail()
        path, journal = self._journal.path, self._journal
        if self._closed:
            return query.nothing(None)
        if path is None or clock.is_virtual():
            return journal.read(query, limit, max_bytes)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        read = partial(self._file.read, (path, journal.files), query, journal.last_offset, limit, max_bytes)
        try:
            return await in_executor(self._thread, read)
        except (sqlite3.Error, OSError) as error:
            _log.warning("the journal %s can't be read in a thread: %s", path, error)
            return journal.read(query, limit, max_bytes)  # it knows what an error means

    def _shared_page(self, query: Query) -> Read | None:
        """The rest of a page that another reader has had, if one begins at or before the offset that is asked for."""
        for other, read in self._shared.items():
            same = other[1:] == query[1:]
            if same and other.after <= query.after < read.upto:
                self._shared.move_to_end(other)
                rest = [entry for entry in read.entries if entry.offset > query.after]
                return read._replace(entries=rest)
        return None

    def _share(self, query: Query, read: Read) -> None:
        self._shared[query] = read
        self._shared_bytes += _size(read)
        while self._shared_bytes > _SHARED_BYTES or len(self._shared) > _SHARED_PAGES:
            _, oldest = self._shared.popitem(last=False)
            self._shared_bytes -= _size(oldest)


class _File:
    """A connection that only reads. Use from one thread."""

    def __init__(self) -> None:
        self._of: _Which | None = None
        self._db: sqlite3.Connection | None = None

    def read(self, which: _Which, query: Asked[FoundT], last: int, limit: int, max_bytes: int) -> FoundT:
        """A page up to offset ``last``, and the oldest offset, out of one state of the file."""
        if self._db is None or which != self._of:
            self.close()
            uri = f"{which[0].absolute().as_uri()}?mode=ro"
            self._db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=1.0)
            self._db.execute(f"PRAGMA cache_size=-{CACHE_KB}")
            self._of = which
        self._db.execute("BEGIN")
        try:
            (first,) = self._db.execute("SELECT min(offset) FROM events").fetchone()
            return query.run(self._db, last + 1 if first is None else first, last, limit, max_bytes)
        finally:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection. Twice is fine."""
        db, self._db = self._db, None
        if db is not None:
            db.close()


def _size(read: Read) -> int:
    return sum(entry.size for entry in read.entries)
