"""A copy of a journal's database in a file that takes the place of another one once it is whole.

Events are copied in bounded steps while more of them come: each is read where the database is used, which takes a
few ms, and written in a thread, which may wait for the disk. What is small, or changes, is copied at the end.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from dimos_streams.journal import tables
from dimos_streams.journal.files.moved_files import leave_behind
from dimos_streams.journal.tables import Row

_STEP_ROWS = 1000
_STEP_BYTES = 1024 * 1024
"""Maximum size of a step, in bytes of events, and one event."""

InThread = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function in another thread; done when that has returned."""


class FileCopy:
    """A copy of a database for the path ``home``. Use from the database's thread.

    What copies raises ``sqlite3.Error`` and ``OSError``. Remove it when done.
    """

    def __init__(self, home: Path, db: sqlite3.Connection) -> None:
        self.home = home
        self.db = db
        self._path = home.with_name(f"{home.name}.new")
        self._upto = 0
        """The newest offset that it has."""
        self._is_begun = False

    async def fill(self, in_thread: InThread) -> None:
        """Copy events in steps, until a last one is left."""
        while _is_step(rows := self._next_rows()):
            await in_thread(partial(self._write, rows))

    def finish(self) -> None:
        """Copy all that is left, and put it in the place of ``home``; a file that is there is moved aside."""
        while rows := self._next_rows():
            self._write(rows)
        with contextlib.closing(self._open()) as copy:
            _copy_rest(self.db, copy)
            # Whoever opens it as a journal would wait until the disk has all of it, if it were not so already.
            copy.execute("PRAGMA journal_mode=WAL")
        leave_behind(self.home)
        if self.home.exists():
            raise OSError(f"{self.home} can't be moved aside")
        self._path.rename(self.home)

    def remove(self) -> None:
        """Remove what was copied in vain. Twice is fine, and after ``finish``."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _next_rows(self) -> list[Row]:
        return tables.rows_after(self.db, self._upto, _STEP_ROWS, _STEP_BYTES)

    def _write(self, rows: list[Row]) -> None:
        with contextlib.closing(self._open()) as copy:
            tables.write(copy, rows)
        self._upto = rows[-1][0]

    def _open(self) -> sqlite3.Connection:
        if not self._is_begun:
            self._path.unlink(missing_ok=True)
            self._is_begun = True
        return _open_copy(self._path)


def _is_step(rows: Sequence[Row]) -> bool:
    """Return whether rows are as many as one step may have."""
    return len(rows) == _STEP_ROWS or sum(len(row[-1]) for row in rows) >= _STEP_BYTES


def _open_copy(path: Path) -> sqlite3.Connection:
    """The file of a copy, made if there is none. It is worth nothing before it is whole, so nothing waits for the
    disk: the checkpoints to come do, in their thread."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode=OFF")
        db.execute("PRAGMA synchronous=OFF")
        db.execute(f"PRAGMA application_id={tables.APPLICATION_ID}")
        tables.create_tables(db)
    except BaseException:
        db.close()
        raise
    return db


def _copy_rest(db: sqlite3.Connection, copy: sqlite3.Connection) -> None:
    """Copy what is no event, and forget the events in the copy that the database has forgotten since."""
    with tables.transaction(copy):
        copy.execute("DELETE FROM events WHERE offset < ?", db.execute("SELECT min(offset) FROM events").fetchone())
        for table, columns in (("calls", 5), ("identity", 2), ("notes", 2)):
            values = ", ".join("?" * columns)
            copy.executemany(f"INSERT INTO {table} VALUES ({values})", db.execute(f"SELECT * FROM {table}"))
