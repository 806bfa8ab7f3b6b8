"""The storage of a journal's events: in a file, or in memory for as long as a disk refuses it."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from dimos_streams import clock
from dimos_streams.journal import tables
from dimos_streams.journal.files.file_copy import FileCopy
from dimos_streams.journal.files.moved_files import (
    has_predecessor,
    is_damaged,
    is_lock,
    is_refusal,
    is_same,
    is_there,
    leave_behind,
    left_files,
    set_aside,
    stat_of,
)
from dimos_streams.journal.files.tail import Tail
from dimos_streams.journal.tables import Identity

DELETED = "a deleted file"
"""The state of a journal whose file was deleted, or has another one in its place."""
_logger = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT")


class JournalStorage:
    """The database of a journal, its tail, and the offsets that it has: what a ``Journal`` stands on. Use from one
    thread.

    A file that is damaged is moved aside; when the disk fails or is full, ``fall_back`` goes on in memory from the
    next offset on, with all notes. The file is moved aside then, too: whoever opens it next must not take it for the
    whole. ``come_back`` goes on in a new file. A new file beside one that was moved aside begins with its notes.
    A file that somebody deletes is read and written while it is open; ``come_back`` makes a new one of all of it.
    """

    def __init__(self, path: Path | None) -> None:
        """Without a ``path`` it is in memory from the beginning."""
        self.path = path
        """The file; None while memory is used."""
        self.home: Path | None = None
        """The path of the file to come back to, while a disk's refusal keeps the journal in memory or the file is
        deleted; else None."""
        self.state = "ok"
        """``"ok"``, ``"memory: "`` and the reason why a file is not used, or ``DELETED``."""
        self.files = 0
        """The number of times that a file was opened; another number means another file, even of the same path."""
        self.first_offset = 1
        """The oldest offset that is kept; ``last_offset + 1`` if none is."""
        self.last_offset = 0
        """The newest offset, 0 before the first event. Events that only the tail has count, too."""
        self.identity = Identity("", 1)
        """The identity of the journal, from ``open`` on."""
        self.resumed_at = 0
        """The newest offset that it had when it was opened."""
        self._notes: dict[str, str] = {}
        """The notes beside the events; whatever becomes of the file, its successor has them too."""
        self.tail = Tail()
        self.db: sqlite3.Connection | None = None
        """The database without the events that only the tail has, for checkpoints; None while it is closed."""
        self._opened_as: os.stat_result | None = None
        self._opened = False
        """True if the file was ours and its offsets are known."""
        self._closed = False
        """True if nothing is kept any more: whoever asks then, as a timer may, must not take that for a failing
        disk."""

    def open(self) -> None:
        """Open or create the file, or fall back to memory."""
        self._closed = False
        if self.path is None:
            self.db = tables.open_memory()
            self._name()
            return
        try:
            self._open_file(self.path)
        except sqlite3.Error as error:
            self._let_go()
            if is_damaged(error) and set_aside(self.path, error):
                try:
                    self._open_file(self.path)
                except sqlite3.Error as second:
                    self.fall_back(second)
            else:
                self.fall_back(error)

    def close(self) -> None:
        """Write everything to the disk and let go of the file. Twice is fine."""
        self.commit_tail()
        self._closed = True
        self._let_go()

    @property
    def is_uncommitted(self) -> bool:
        """True if the database lacks what only the tail has."""
        return bool(self.tail.uncommitted)

    @property
    def database(self) -> sqlite3.Connection:
        """The database, with all that was kept. Raises ``sqlite3.Error``."""
        if self.db is None:
            raise sqlite3.ProgrammingError("the journal is not open")
        if self.tail.uncommitted:
            self._take_in_tail(self.db)
        return self.db

    def commit_tail(self) -> None:
        """Have the database take in what only the tail has. Twice is fine, and after ``close``."""
        if self.tail.uncommitted:
            self.ask(lambda db: None, None)

    def ask(self, look: Callable[[sqlite3.Connection], AnswerT], otherwise: AnswerT) -> AnswerT:
        """Return the database's answer; if it fails, go on in memory and return ``otherwise``, as after ``close``."""
        try:
            return look(self.database)
        except sqlite3.Error as error:
            self.fall_back(error)
            return otherwise

    def rename(self, begin: int) -> None:
        """Give the journal a new identity from an offset on: other events are known at these offsets of the old one.
        That is so where a power cut has taken the end of a file, or where a copy of it was put back."""
        self.identity = tables.new_identity(begin)
        self.ask(lambda db: tables.set_identity(db, self.identity), None)

    def fall_back(self, error: sqlite3.Error) -> None:
        """Go on in memory; what was in the file is out of reach. After ``close`` nothing goes on. Raises the error if
        memory itself fails."""
        if self._closed:
            return
        if self.db is not None and self.path is None:
            raise error
        uncommitted, self.tail.uncommitted = self.tail.uncommitted, []
        first = self.last_offset + 1 - len(uncommitted)
        self.state = f"memory: {error}"
        _logger.error("the journal %s fails (%s); from offset %d on events are in memory only",
                      self.path, error, first)  # fmt: skip
        self._let_go()
        if self.path is not None:
            self._leave(self.path, error)
        self.path = None
        self.db = tables.open_memory()
        tables.set_notes(self.db, self._notes)
        tables.write(self.db, uncommitted)
        self.first_offset = self.last_offset + 1 - len(uncommitted)
        self._name()

    def look_for_file(self) -> None:
        """Note it if the file is not there any more, or another one is in its place."""
        if (
            self.path is None
            or self.home is not None
            or self._opened_as is None
            or is_same(self.path, self._opened_as)
        ):
            return
        self.home, self.state = self.path, DELETED
        _logger.error(
            "the journal %s was deleted, or another file was put in its place; it is written anew", self.path
        )

    def claim_home(self) -> bool:
        """Take the tail of the file to come back to; return whether there is such a file, and it is nobody else's."""
        self.commit_tail()
        if self.home is None:
            return False
        if self.path is not None:
            self.tail.close()  # it may be deleted as well
        try:
            self.tail.open(self.home)
        except sqlite3.Error as error:
            _logger.warning("the journal can't be kept in %s again: %s", self.home, error)
            return False
        return True

    def come_back(self, copy: FileCopy | None = None) -> bool:
        """Go on in a file, with all that memory or a deleted file has; return whether it does now.

        Offsets go on as they were. What was written before the disk refused is in the file that was moved aside. It
        takes some 0.1 s for as much as memory may hold, and for a large file a second, but for what ``copy`` has.
        """
        # The tail comes first: the file that is moved aside may be another bridge's by now.
        if not self.claim_home() or self.home is None or self.db is None:
            return False
        home, memory = self.home, self.db
        first, last = self.first_offset, self.last_offset
        copied = False
        copy = copy or FileCopy(home, memory)
        try:
            copy.finish()
            copied = True
            self._open_file(home)
        except (sqlite3.Error, OSError) as error:
            _logger.warning("the journal can't be kept in %s again: %s", home, error)
            self.tail.close()
            if self.db is not memory:
                self._let_go()
            if copied:
                leave_behind(home)
            self.db, self.first_offset, self.last_offset = memory, first, last
            return False
        finally:
            copy.remove()
        self.path, self.home, self.state = home, None, "ok"
        self.first_offset, self.last_offset = first, last
        with contextlib.suppress(sqlite3.Error):
            memory.execute("PRAGMA synchronous=OFF")  # its log need not get to the disk
        memory.close()
        _logger.warning("the journal is in %s again, from offset %d on", home, first)
        return True

    def _open_file(self, path: Path) -> None:
        self.files += 1
        self.tail.uncommitted = []  # what was to go into a file that is damaged is lost with it
        db = self.db = tables.open_file(path)
        self._opened_as = stat_of(path)
        self.tail.open(path)
        self._notes = tables.notes(db, "")
        if tables.identity(db) is None:
            self._notes = _inherited(left_files(path))
            tables.set_notes(db, self._notes)
        kept = tables.offsets(db)
        if kept is not None:
            self.first_offset, self.last_offset = kept
        elif has_predecessor(path):
            self._begin_anew()
        self._name()
        # What a process that was killed has left.
        self.tail.uncommitted = self.tail.left(self.identity.journal_id, self.last_offset)
        self.last_offset += len(self.tail.uncommitted)
        self.resumed_at = self.last_offset
        self._opened = True
        self._take_in_tail(db)
        self.tail.begin()

    def _take_in_tail(self, db: sqlite3.Connection) -> None:
        """Have the database take in what only the tail has. If that fails, memory goes on with it."""
        tables.write(db, self.tail.uncommitted)
        self.tail.uncommitted = []

    def _name(self) -> None:
        """Read the journal's identity from the database, or give it one if it is new."""
        known = tables.identity(self.database)
        if known is None:
            known = tables.new_identity(self.first_offset)
            tables.set_identity(self.database, known)
        self.identity = known
        self.resumed_at = self.last_offset

    def _begin_anew(self) -> None:
        """Begin at offsets that no journal before has had, because readers stand at offsets of one that is gone: the
        microseconds since 1970 are ahead of anything that was counted one by one."""
        self.first_offset = clock.utime()
        self.last_offset = self.first_offset - 1

    def _leave(self, path: Path, error: sqlite3.Error) -> None:
        """Move a file that fails out of the way, and keep its path if the journal may come back to it."""
        if is_damaged(error):
            set_aside(path, error)
        elif self._opened:
            leave_behind(path)
        elif is_there(path) or has_predecessor(path):
            self._begin_anew()
        # A file that was held from the beginning may be another program's: it stays where it is.
        if is_refusal(error) or (is_lock(error) and self._opened):
            self._notes = self._notes or _inherited([*left_files(path), path])
            self.home = path

    def _let_go(self) -> None:
        self.tail.close()
        db, self.db = self.db, None
        if db is not None:
            try:
                db.close()
            except sqlite3.Error as error:
                _logger.error("the journal %s could not be closed well: %s", self.path, error)


def _inherited(files: Sequence[Path]) -> dict[str, str]:
    """The notes of the newest of these files that has any and can be read."""
    for path in filter(is_there, reversed(files)):
        try:
            if notes := tables.notes_of(path):
                return notes
        except sqlite3.Error as error:
            _logger.warning("what is noted in %s can't be read: %s", path, error)
    return {}
