"""A checkpoint of a journal's write-ahead log in two parts: what waits for the disk, in a thread, and the rest.

SQLite begins its log anew with the first commit after a complete checkpoint, and waits for the disk in that commit:
the log's new beginning must be there before what follows overwrites the old log. On the bridge's loop that would hold
everybody up for as long as the disk likes. So nothing is overwritten here: a reader keeps the log from being begun
anew while a thread copies it; if nothing was written meanwhile the log is emptied, which waits for nothing.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

_BUSY_S = 0.02
"""Time, in seconds, for which a reader may keep the log from being emptied; the next checkpoint tries again."""


class Checkpoint:
    """One checkpoint. ``begin`` and ``finish`` belong to the writer's thread, ``copy`` to another one.

    All raise ``sqlite3.Error``. Close it when done.
    """

    def __init__(self, path: Path, writer: sqlite3.Connection) -> None:
        self._path = path
        self._writer = writer
        self._reader: sqlite3.Connection | None = None
        self._changes = 0
        self._is_complete = False
        self.pages = 0
        """Number of pages that the log had."""

    def begin(self) -> None:
        """Keep the log from being begun anew behind what is written now."""
        self._reader = sqlite3.connect(self._path, isolation_level=None)
        self._reader.execute("BEGIN")
        self._reader.execute("SELECT count(*) FROM identity").fetchall()
        self._changes = self._writer.total_changes

    def copy(self) -> None:
        """Move into the file what was written before ``begin``. Waits for the disk."""
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None, timeout=1.0)) as db:
            busy, self.pages, copied = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self._is_complete = not busy and self.pages == copied

    def finish(self) -> bool:
        """Empty the log if nothing was written since ``begin``; return whether that was done. Waits for nothing."""
        self.close()
        if not self._is_complete or self._writer.total_changes != self._changes:
            return False
        (timeout_ms,) = self._writer.execute("PRAGMA busy_timeout").fetchone()
        self._writer.execute(f"PRAGMA busy_timeout={int(_BUSY_S * 1000)}")
        try:
            (busy, _, _) = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                self._begin_log()
            return not busy
        finally:
            self._writer.execute(f"PRAGMA busy_timeout={timeout_ms}")

    def _begin_log(self) -> None:
        """Write a first commit into the empty log without waiting for the disk: there is nothing to overwrite. If the
        power is cut now, the log is empty, or still the old one as a whole, all of which is in the file already."""
        self._writer.execute("PRAGMA synchronous=OFF")
        try:
            (version,) = self._writer.execute("PRAGMA user_version").fetchone()
            self._writer.execute(f"PRAGMA user_version={(version + 1) % 2**30}")
        finally:
            self._writer.execute("PRAGMA synchronous=NORMAL")

    def close(self) -> None:
        """Let go of the file. Twice is fine."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
