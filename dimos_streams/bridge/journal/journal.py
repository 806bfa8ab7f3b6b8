"""The journal: every event at its offset, in SQLite, so that readers and the broker survive a restart."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dimos_streams import clock
from dimos_streams.bridge.journal import tables
from dimos_streams.bridge.journal.checkpoint import Checkpoint
from dimos_streams.bridge.journal.entry import EncodedEntry
from dimos_streams.bridge.journal.moved_files import (
    has_predecessor,
    is_damaged,
    is_refusal,
    leave_behind,
    left_files,
    set_aside,
)
from dimos_streams.bridge.journal.query import Asked
from dimos_streams.bridge.journal.tables import CallRow, Identity, Row
from dimos_streams.bridge.journal.tail import Tail, left_in_tail
from dimos_streams.tool_stream.event import ToolEvent

_logger = logging.getLogger(__name__)

FoundT = TypeVar("FoundT")

_MEMORY_BYTES = 32 * 1024 * 1024
"""The size of what is kept in memory at most, instead of a file."""
_FEW = 8
"""Events that are kept in the tail first; for more a commit costs each of them less than that."""
_TRIM_EVERY = 512
_TRIM_STEP = 1024
_CHECKPOINTS = 3
"""So often a checkpoint is made at once, each shorter than the one before, until nothing is written during one,"""
_LONG_LOG = 1024
"""if the log has so many pages; a shorter one may wait for the next time."""

InThread = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function in another thread; done when that has returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLimits:
    """Bounds of a journal. It is trimmed from its beginning, a bounded step at a time."""

    events: int = 200_000
    age_s: float = 86_400.0
    bytes: int = 256 * 1024 * 1024
    closed_calls: int = 2_000


class Journal:
    """Events by offset 1, 2, 3 …, in a file or (``path`` None) in memory. Use from one thread.

    Beside a file that was moved aside, offsets begin far behind those of the old one.

    It is called on the event loop: a batch costs 20 µs and 7 µs per event, less than a hop to a thread and back.
    What waits for the disk, the checkpoint of the write-ahead log, is done in a thread.

    No method raises because of the disk. A file that is damaged is moved aside; when the disk fails or is full, the
    journal goes on in memory from the next offset on, with all notes, and ``state`` says why. The file is moved aside
    then, too: who opens it next must not take it for the whole. When the disk has room again, ``come_back`` goes on
    in a new file. A new file beside one that was moved aside begins with its notes.

    ``identity`` is another one where an offset may mean another event: in each new file, and in memory after a file,
    since what is at the same offsets of that file later is not known.
    """

    def __init__(self, path: Path | None = None, limits: JournalLimits | None = None) -> None:
        self.path = path
        self.limits = limits or JournalLimits()
        self.state = "ok"
        """``"ok"``, or ``"memory: "`` and the reason why a file is not used."""
        self.files = 0
        """How often a file was opened; another number is another file, of the same path too."""
        self._home: Path | None = None
        """Where the file is to be again, while a disk that refuses keeps it in memory."""
        self._db: sqlite3.Connection | None = None
        self._first, self._last = 1, 0
        self.identity = Identity("", 1)
        """Which journal it is, from ``open`` on."""
        self.resumed_at = 0
        """The newest offset that it had when it was opened."""
        self._opened = False
        """Whether the file was ours and its offsets are known."""
        self._notes: dict[str, str] = {}
        """What is noted beside the events; whatever becomes of the file, it is in what comes after it, too."""
        self._since_trim = 0
        self._tail: Tail | None = None
        self._unsettled: list[Row] = []
        """What is in the tail and not yet in the database."""
        self._checkpointed = (0, 0)
        """Which file was checkpointed as a whole last, and how much had been written to it."""

    @property
    def first_offset(self) -> int:
        """The oldest offset that is kept; ``last_offset + 1`` if none is."""
        return self._first

    @property
    def last_offset(self) -> int:
        """The newest offset, 0 before the first event."""
        return self._last

    def open(self) -> None:
        """Open or create the file, or fall back to memory."""
        if self.path is None:
            self._db = tables.open_memory()
            self._name()
            return
        try:
            self._open_file(self.path)
        except sqlite3.Error as error:
            self._close_db()
            if is_damaged(error) and set_aside(self.path, error):
                try:
                    self._open_file(self.path)
                except sqlite3.Error as second:
                    self._fall_back(second)
            else:
                self._fall_back(error)

    def close(self) -> None:
        """Write everything to the disk and let go of the file. Twice is fine."""
        self.settle()
        self._close_db()

    def come_back(self) -> bool:
        """Go on in a file, with all that memory has, after the disk refused; whether it does now.

        Offsets go on as they were. What was written before is in the file that was moved aside. It takes some 0.1 s
        for what memory holds at most.
        """
        home, memory = self._home, self._db
        if home is None or memory is None:
            return False
        first, last = self._first, self._last
        copied = False
        try:
            tables.copy_to(home, memory)
            copied = True
            self._open_file(home)
        except (sqlite3.Error, OSError) as error:
            _logger.warning("the journal can't be kept in %s again: %s", home, error)
            if self._db is not memory:
                self._close_db()
            if copied:
                leave_behind(home)
            self._db, self._first, self._last = memory, first, last
            return False
        self.path, self._home, self.state = home, None, "ok"
        self._first, self._last = first, last
        memory.close()
        _logger.warning("the journal is in %s again, from offset %d on", home, first)
        return True

    def rename(self, begin: int) -> None:
        """Give what comes from an offset on a name of its own: other events are known at these offsets of the old
        one. That is so where a power cut has taken the end of a file, or where a copy of it was put back."""
        self.identity = tables.new_identity(begin)
        try:
            tables.set_identity(self._connection(), self.identity)
        except sqlite3.Error as error:
            self._fall_back(error)

    def append(self, events: Sequence[ToolEvent], calls: Sequence[CallRow] = ()) -> list[EncodedEntry]:
        """Give the events their offsets and keep them, and what is new of their calls, in one transaction."""
        if not events and not calls:
            return []
        entries = self._entries(events)
        rows = tables.rows_of(entries, events)
        try:
            tables.write(self._connection(), rows, calls)
        except sqlite3.Error as error:
            self._fall_back(error)
            tables.write(self._connection(), rows, calls)
        self._last += len(entries)
        self._grow(len(entries) + len(calls))
        return entries

    def keep(self, events: Sequence[ToolEvent]) -> list[EncodedEntry]:
        """Give the events their offsets and make them safe, as ``append`` does. Readers may have them at once; then
        ``settle``."""
        self.settle()
        if self._tail is None or not 0 < len(events) <= _FEW or self._last < self._first:
            return self.append(events)
        entries = self._entries(events)
        rows = tables.rows_of(entries, events)
        try:
            self._tail.write(self.identity.journal_id, rows)
        except OSError as error:
            _logger.warning("the tail of the journal %s can't be written (%s): it is done without", self.path, error)
            self._tail.close()
            self._tail = None
            return self.append(events)
        self._unsettled = rows
        self._last += len(rows)
        return entries

    def settle(self) -> None:
        """Have the database take in what only the tail has."""
        if self._unsettled:
            count = len(self._unsettled)
            try:
                self._connection()
            except sqlite3.Error as error:
                self._fall_back(error)
            self._grow(count)

    def _entries(self, events: Sequence[ToolEvent]) -> list[EncodedEntry]:
        return [EncodedEntry.of(self._last + 1 + index, event) for index, event in enumerate(events)]

    def _grow(self, rows: int) -> None:
        """Note that the database has more rows, and trim it now and then."""
        self._since_trim += rows
        if self._since_trim >= _TRIM_EVERY:
            self.trim()

    def read(self, query: Asked[FoundT], limit: int, max_bytes: int) -> FoundT:
        """See ``Asked.run``. It is for who may hold up the loop; readers go through ``JournalPages``."""
        try:
            return query.run(self._connection(), self._first, self._last, limit, max_bytes)
        except sqlite3.Error as error:
            self._fall_back(error)
            return query.nothing(self._first)

    def call(self, call_id: str) -> CallRow | None:
        """The row of one call, None for an unknown one."""
        try:
            return tables.call_row(self._connection(), call_id)
        except sqlite3.Error as error:
            self._fall_back(error)
            return None

    def calls(self, closed: int) -> list[CallRow]:
        """All open calls and the newest ``closed`` ones, oldest first; for a broker that starts again.

        The seq of an open call is that of its newest event.
        """
        try:
            rows = tables.call_rows(self._connection(), closed)
        except sqlite3.Error as error:
            self._fall_back(error)
            return []
        seqs = self._newest_seqs() if any(not row.closed for row in rows) else {}
        return [row._replace(last_seq=max(row.last_seq, seqs.get(row.call_id, 0))) for row in rows]

    def notes(self, prefix: str) -> dict[str, str]:
        """What was noted beside the events, under names that begin so."""
        return {name: value for name, value in self._notes.items() if name.startswith(prefix)}

    def note(self, name: str, value: str | None) -> None:
        """Keep a text beside the events, in place of the one of that name; None forgets it. Whoever notes anything
        bounds how much: all are in memory, too."""
        if value is None:
            self._notes.pop(name, None)
        else:
            self._notes[name] = value
        try:
            tables.set_note(self._connection(), name, value)
        except sqlite3.Error as error:
            self._fall_back(error)

    def trim(self) -> None:
        """Drop what is beyond the limits, at most a step of it."""
        self._since_trim = 0
        try:
            cut = self._cut()
            if cut >= self._first:
                tables.drop_events(self._connection(), cut)
                self._first = cut + 1
            tables.drop_closed_calls(self._connection(), self.limits.closed_calls)
        except sqlite3.Error as error:
            self._fall_back(error)

    async def checkpoint(self, in_thread: InThread) -> None:
        """Move the write-ahead log into the file. What waits for the disk is done ``in_thread``."""
        for _ in range(_CHECKPOINTS):
            path, db = self.path, self._db
            if path is None or db is None or self._checkpointed == (self.files, db.total_changes):
                return
            checkpoint = Checkpoint(path, db)
            try:
                checkpoint.begin()
                await in_thread(checkpoint.copy)
                if self._db is not db:
                    return
                if checkpoint.finish():
                    self._checkpointed = self.files, db.total_changes
                elif checkpoint.pages < _LONG_LOG:
                    return
            except sqlite3.Error as error:  # what it means for events shows at the next append
                _logger.warning("the journal %s can't be checkpointed: %s", path, error)
                return
            finally:
                checkpoint.close()

    def size(self) -> int:
        """Bytes in use."""
        try:
            return tables.size(self._connection())
        except sqlite3.Error as error:
            self._fall_back(error)
            return 0

    def _connection(self) -> sqlite3.Connection:
        """The database, with all that was kept."""
        if self._db is None:
            raise sqlite3.ProgrammingError("the journal is not open")
        if self._unsettled:
            tables.write(self._db, self._unsettled)
            self._unsettled = []
        return self._db

    def _open_file(self, path: Path) -> None:
        self.files += 1
        self._db = tables.open_file(path)
        self._notes = tables.notes(self._db, "")
        if tables.identity(self._db) is None:
            self._notes = self._inherited(left_files(path))
            tables.set_notes(self._db, self._notes)
        kept = tables.offsets(self._db)
        if kept is not None:
            self._first, self._last = kept
        elif has_predecessor(path):
            self._begin_anew()
        self._name()
        self._opened = True
        self._take_in_tail(path)

    def _take_in_tail(self, path: Path) -> None:
        """Enter what a process that was killed has left, then begin a tail of our own."""
        rows = left_in_tail(path, self.identity.journal_id, self._last)
        if rows:
            tables.write(self._connection(), rows)
            self._last += len(rows)
        self.resumed_at = self._last
        tail = Tail(path)
        try:
            tail.open()
        except OSError as error:
            _logger.warning("the journal %s can have no tail: %s", path, error)
        else:
            self._tail = tail

    def _name(self) -> None:
        """Know which journal it is, from the database, or name it if it is a new one."""
        db = self._connection()
        known = tables.identity(db)
        if known is None:
            known = tables.new_identity(self._first)
            tables.set_identity(db, known)
        self.identity = known
        self.resumed_at = self._last

    def _begin_anew(self) -> None:
        """Readers stand at offsets of a journal that is gone. None of it may be taken for one of this journal: the
        microseconds since 1970 are ahead of anything that was counted one by one."""
        self._first = clock.utime()
        self._last = self._first - 1

    def _inherited(self, files: Sequence[Path]) -> dict[str, str]:
        """The notes of the newest of these files that has any and can be read."""
        for path in filter(Path.exists, reversed(files)):
            try:
                if notes := tables.notes_of(path):
                    return notes
            except sqlite3.Error as error:
                _logger.warning("what is noted in %s can't be read: %s", path, error)
        return {}

    def _newest_seqs(self) -> dict[str, int]:
        try:
            return tables.newest_seqs(self._connection())
        except sqlite3.Error as error:
            self._fall_back(error)
            return {}

    def _cut(self) -> int:
        """The last offset that must go now, below ``first_offset`` if none must. The newest one stays."""
        step = self._first + _TRIM_STEP - 1
        by_count = self._last - self.limits.events
        most = self.limits.bytes if self._home is None else min(self.limits.bytes, _MEMORY_BYTES)
        by_size = step if self.size() > most else 0
        oldest = clock.utime() - int(self.limits.age_s * 1e6)
        by_age = tables.last_before(self._connection(), oldest, step)
        return min(max(by_count, by_size, by_age), step, self._last - 1)

    def _fall_back(self, error: sqlite3.Error) -> None:
        """Go on in memory; what was in the file is out of reach. Raises the error if memory itself fails."""
        if self._db is not None and self.path is None:
            raise error
        self.state = f"memory: {error}"
        _logger.error("the journal %s fails (%s); from offset %d on events are in memory only",
                      self.path, error, self._last + 1 - len(self._unsettled))  # fmt: skip
        self._close_db()
        if self.path is not None:
            if is_damaged(error):
                set_aside(self.path, error)
            elif self._opened:
                leave_behind(self.path)
            elif self.path.exists() or has_predecessor(self.path):
                self._begin_anew()
            if is_refusal(error):
                self._notes = self._notes or self._inherited([*left_files(self.path), self.path])
                self._home = self.path
        self.path = None
        self._db = tables.open_memory()
        tables.set_notes(self._db, self._notes)
        unsettled, self._unsettled = self._unsettled, []
        tables.write(self._db, unsettled)
        self._first = self._last + 1 - len(unsettled)
        self._name()

    def _close_db(self) -> None:
        tail, self._tail = self._tail, None
        if tail is not None:
            tail.close()
        db, self._db = self._db, None
        if db is not None:
            try:
                db.close()
            except sqlite3.Error as error:
                _logger.error("the journal %s could not be closed well: %s", self.path, error)
