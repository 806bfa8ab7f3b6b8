"""A journal that nobody writes any more, as a source of events for a hub."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from dimos_streams.bridge.fleet.run_journals import ROBOT_NOTE
from dimos_streams.bridge.fleet.shipping.ended_calls import close_open_calls
from dimos_streams.common.process.threads import in_executor
from dimos_streams.journal import tables
from dimos_streams.journal.catch_up import PAGE, PAGE_BYTES
from dimos_streams.journal.files.tail import left_in_tail
from dimos_streams.journal.query import Query, Read
from dimos_streams.journal.tables import Identity

T = TypeVar("T")

_SHIPPED_NOTE = "fleet/shipped"
"""The name of a journal's note of the offset up to which a hub has it, and of the hub's process that has said so."""


class OlderJournal:
    """A journal that nobody writes any more: a ``JournalSource``. Its file is opened for each page."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identity = Identity("", 1)
        self.last_offset = 0
        self.robot = ""
        self.is_shipped = True
        self.hub = ""
        """The name of the hub's process that has said that it has all of it; empty if none has, or had no name."""

    @property
    def resumed_at(self) -> int:
        """See ``JournalSource``."""
        return self.last_offset

    async def open(self) -> None:
        """Look at what is in it. Raises ``sqlite3.Error``."""
        await self._in_file(self._look)

    def _look(self, db: sqlite3.Connection) -> None:
        notes, found, ends = tables.notes(db, "fleet/"), tables.identity(db), tables.offsets(db)
        if found is not None and ends is not None and (rows := left_in_tail(self.path, found.journal_id, ends[1])):
            tables.write(db, rows)
            ends = tables.offsets(db)
        if found is not None and ends is not None:
            self.identity, self.last_offset, self.robot = found, ends[1], notes.get(ROBOT_NOTE, "")
            shipped, _, hub = notes.get(_SHIPPED_NOTE, "").partition(" ")
            self.is_shipped = shipped == f"{ends[1]}"
            self.hub = hub if self.is_shipped else ""

    async def close_calls(self) -> None:
        """Close what was open when its run ended, unless another process has the file open, which may be the one that
        writes it. Raises ``sqlite3.Error``."""

        def close(db: sqlite3.Connection) -> None:
            if tables.has_open_calls(db):
                _take_alone(db)
                close_open_calls(db, self.last_offset)

        try:
            await self._in_file(close)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
        await self.open()

    async def read(self, after: int) -> Read:
        """See ``JournalSource``. Raises ``sqlite3.Error``."""
        return await self._in_file(partial(self._page, after))

    def _page(self, after: int, db: sqlite3.Connection) -> Read:
        ends = tables.offsets(db)
        first = self.last_offset + 1 if ends is None else ends[0]
        return Query(after).run(db, first, self.last_offset, PAGE, PAGE_BYTES)

    def rename(self, begin: int) -> None:
        """See ``JournalSource``. Raises ``sqlite3.Error``, also while another process has the file open: whoever
        writes it must not find another name on it."""
        identity = tables.new_identity(begin)
        with contextlib.closing(_connect(self.path)) as db:
            _take_alone(db)
            tables.set_identity(db, identity)
        self.identity = identity

    async def note_shipped(self, hub: str) -> None:
        """Note that the hub has it, so that this process of it is not asked again. Raises ``sqlite3.Error``."""
        await self._in_file(lambda db: tables.set_note(db, _SHIPPED_NOTE, f"{self.last_offset} {hub}".strip()))

    async def _in_file(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with contextlib.closing(_connect(self.path)) as db:
                return work(db)

        return await in_executor(None, run)


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether an error says that another process has the file open."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _take_alone(db: sqlite3.Connection) -> None:
    """Have the next statement fail at once, as busy, if another process has the file open."""
    db.execute("PRAGMA busy_timeout=0")
    db.execute("PRAGMA locking_mode=EXCLUSIVE")


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=1.0)
