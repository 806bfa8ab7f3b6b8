"""The journal: every event at its offset, in SQLite, so that readers and the broker survive a restart."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dimos_streams import clock
from dimos_streams.bridge.journal.entry import EncodedEntry
from dimos_streams.tool_stream.event import ToolEvent

_logger = logging.getLogger(__name__)

_APPLICATION_ID = 0x64537472
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS events"
    " (offset INTEGER PRIMARY KEY, utime INTEGER, call_id TEXT, seq INTEGER, caller TEXT, type TEXT, body BLOB)",
    "CREATE TABLE IF NOT EXISTS calls"
    " (number INTEGER PRIMARY KEY, call_id TEXT UNIQUE, last_seq INTEGER, closed INTEGER, record TEXT)",
)
_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)"
_DAMAGED, _LEFT = ".damaged-", ".left-"
"""In the names of files that were moved aside, because they are bad or because they lack what came later."""
_MEMORY_BYTES = 32 * 1024 * 1024
"""What is kept in memory at most, instead of a file."""
_REFUSED = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""What SQLite says of a disk that may take it another time."""
_TRIM_EVERY = 512
_TRIM_STEP = 1024
_SPAN = 4096
"""Offsets that one read looks at: bounds its time (about 1 ms) however rare the events are that it wants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLimits:
    """Bounds of a journal. It is trimmed from its beginning, a bounded step at a time."""

    events: int = 200_000
    age_s: float = 86_400.0
    bytes: int = 256 * 1024 * 1024
    closed_calls: int = 2_000


class CallRow(NamedTuple):
    """What the journal keeps of a call besides its events. ``record`` is the broker's own JSON."""

    call_id: str
    last_seq: int
    closed: bool
    record: str


class Read(NamedTuple):
    """Entries found, and the offset up to which the journal was searched for them."""

    entries: list[EncodedEntry]
    upto: int
    first: int
    """The oldest offset that was kept then; what is missing before it was there once."""


class Query(NamedTuple):
    """What a reader looks for: entries behind an offset, of one caller or call if it says so."""

    after: int
    caller: str | None = None
    call_id: str | None = None

    def run(self, db: sqlite3.Connection, first: int, last: int, limit: int, max_bytes: int) -> Read:
        """Find up to ``limit`` entries of ``max_bytes`` together, at least one, in offsets ``first`` to ``last``.

        Looks at a bounded span, so ask again behind ``upto``. Raises ``sqlite3.Error``.
        """
        upto = min(max(self.after, first - 1) + _SPAN, last)
        query = "SELECT offset, call_id, caller, type, body FROM events WHERE offset > ? AND offset <= ?"
        values: list[int | str] = [self.after, upto]
        for column, value in (("caller", self.caller), ("call_id", self.call_id)):
            if value is not None:
                query += f" AND {column} = ?"
                values.append(value)
        entries: list[EncodedEntry] = []
        size = 0
        # Row by row: what is beyond the bounds is not read from the disk.
        for row in db.execute(f"{query} ORDER BY offset LIMIT ?", [*values, limit]):
            entry = EncodedEntry(*row)
            size += len(entry.body)
            if entries and size > max_bytes:
                return Read(entries, entries[-1].offset, first)
            entries.append(entry)
        return Read(entries, entries[-1].offset if len(entries) == limit else upto, first)


class Journal:
    """Events by offset 1, 2, 3 …, in a file or (``path`` None) in memory. Use from one thread.

    Beside a file that was moved aside, offsets begin far behind those of the old one.

    It is called on the event loop: a batch costs 20 µs and 7 µs per event, less than a hop to a thread and back.
    What may wait for the disk, the checkpoint of the write-ahead log, is a function of its own for a thread.

    No method raises because of the disk. A file that is damaged is moved aside; when the disk fails or is full, the
    journal goes on in memory from the next offset on, and ``state`` says why. The file is moved aside then, too: who
    opens it next must not take it for the whole. When the disk has room again, ``come_back`` goes on in a new file.
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
        self._opened = False
        """Whether the file was ours and its offsets are known."""
        self._since_trim = 0

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
            self._use(sqlite3.connect(":memory:", isolation_level=None))
            return
        try:
            self._open_file(self.path)
        except sqlite3.Error as error:
            self._close_db()
            if _is_damaged(error) and self._set_aside(self.path, error):
                try:
                    self._open_file(self.path)
                except sqlite3.Error as second:
                    self._fall_back(second)
            else:
                self._fall_back(error)

    def close(self) -> None:
        """Write everything to the disk and let go of the file. Twice is fine."""
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
        try:
            self._move_to(home, memory)
        except (sqlite3.Error, OSError) as error:
            _logger.warning("the journal can't be kept in %s again: %s", home, error)
            if self._db is not memory:
                self._close_db()
                self._leave(home)
            self._db, self._first, self._last = memory, first, last
            return False
        self.path, self._home, self.state = home, None, "ok"
        self._first, self._last = first, last
        memory.close()
        _logger.warning("the journal is in %s again, from offset %d on", home, first)
        return True

    def append(self, events: Sequence[ToolEvent], calls: Sequence[CallRow] = ()) -> list[EncodedEntry]:
        """Give the events their offsets and keep them, and what is new of their calls, in one transaction."""
        if not events and not calls:
            return []
        entries = [EncodedEntry.of(self._last + 1 + index, event) for index, event in enumerate(events)]
        try:
            self._write(entries, events, calls)
        except sqlite3.Error as error:
            self._fall_back(error)
            self._write(entries, events, calls)
        self._last += len(entries)
        self._since_trim += len(entries) + len(calls)
        if self._since_trim >= _TRIM_EVERY:
            self.trim()
        return entries

    def read(self, query: Query, limit: int, max_bytes: int) -> Read:
        """See ``Query.run``. It is for who may hold up the loop; readers go through ``JournalPages``."""
        try:
            return query.run(self._connection(), self._first, self._last, limit, max_bytes)
        except sqlite3.Error as error:
            self._fall_back(error)
            return Read([], query.after, self._first)

    def call(self, call_id: str) -> CallRow | None:
        """What is kept of one call, None for an unknown one."""
        rows = self._call_rows("WHERE call_id = ?", call_id)
        return rows[0] if rows else None

    def calls(self, closed: int) -> list[CallRow]:
        """All open calls and the newest ``closed`` ones, oldest first; for a broker that starts again.

        The seq of an open call is that of its newest event.
        """
        newest = "SELECT number FROM calls WHERE closed ORDER BY number DESC LIMIT ?"
        rows = self._call_rows(f"WHERE NOT closed OR number IN ({newest}) ORDER BY number", closed)
        seqs = self._newest_seqs() if any(not row.closed for row in rows) else {}
        return [row._replace(last_seq=max(row.last_seq, seqs.get(row.call_id, 0))) for row in rows]

    def trim(self) -> None:
        """Drop what is beyond the limits, at most a step of it."""
        self._since_trim = 0
        try:
            cut = self._cut()
            if cut >= self._first:
                self._drop_events(cut)
            self._connection().execute(
                "DELETE FROM calls WHERE closed AND number <= (SELECT number FROM calls ORDER BY number DESC"
                " LIMIT 1 OFFSET ?)",
                (self.limits.closed_calls,),
            )
        except sqlite3.Error as error:
            self._fall_back(error)

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file. Waits for the disk: call it in another thread."""
        path = self.path
        if path is None or self.state != "ok":
            return
        try:
            with contextlib.closing(sqlite3.connect(path, timeout=1.0)) as db:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:  # what it means for events shows at the next append
            _logger.warning("the journal %s can't be checkpointed: %s", path, error)

    def size(self) -> int:
        """Bytes in use."""
        try:
            pages, free, page_size = (
                self._connection().execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        except sqlite3.Error as error:
            self._fall_back(error)
            return 0
        return int((pages - free) * page_size)

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            raise sqlite3.ProgrammingError("the journal is not open")
        return self._db

    def _move_to(self, home: Path, memory: sqlite3.Connection) -> None:
        copied = home.with_name(f"{home.name}.new")
        copied.unlink(missing_ok=True)
        try:
            with contextlib.closing(sqlite3.connect(copied)) as copy:
                copy.execute("PRAGMA synchronous=OFF")  # the checkpoints to come wait for the disk, in their thread
                memory.backup(copy)
                copy.execute(f"PRAGMA application_id={_APPLICATION_ID}")
            self._leave(home)
            if home.exists():
                raise OSError(f"{home} can't be moved aside")
            copied.rename(home)
        finally:
            copied.unlink(missing_ok=True)
        self._open_file(home)

    def _open_file(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from error
        db = self._db = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        self.files += 1
        owner = db.execute("PRAGMA application_id").fetchone()[0]
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and owner != _APPLICATION_ID:
            raise sqlite3.OperationalError(f"{path} is another program's database")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        # Checkpoints wait for the disk; checkpoint() does them in a thread long before this many pages.
        db.execute("PRAGMA wal_autocheckpoint=50000")
        db.execute(f"PRAGMA application_id={_APPLICATION_ID}")
        self._use(db)
        # Apart, each is a look at one end of the table; together SQLite would read all of it.
        first, last = db.execute(
            "SELECT (SELECT min(offset) FROM events), (SELECT max(offset) FROM events)"
        ).fetchone()
        if last is not None:
            self._first, self._last = first, last
        elif _has_predecessor(path):
            self._begin_anew()
        self._opened = True

    def _begin_anew(self) -> None:
        """Readers stand at offsets of a journal that is gone. None of it may be taken for one of this journal: the
        microseconds since 1970 are ahead of anything that was counted one by one."""
        self._first = clock.utime()
        self._last = self._first - 1

    def _use(self, db: sqlite3.Connection) -> None:
        self._db = db
        for statement in _SCHEMA:
            db.execute(statement)

    def _write(self, entries: Iterable[EncodedEntry], events: Sequence[ToolEvent], calls: Sequence[CallRow]) -> None:
        db = self._connection()
        utime = clock.utime()
        rows = [
            (entry.offset, utime, entry.call_id, event.seq, entry.caller, entry.type, entry.body)
            for entry, event in zip(entries, events, strict=True)
        ]
        if len(rows) == 1 and not calls:
            db.execute(_INSERT, rows[0])  # one statement is a transaction by itself, and 15 µs shorter
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            db.executemany(_INSERT, rows)
            if calls:
                db.executemany(
                    "INSERT INTO calls (call_id, last_seq, closed, record) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (call_id) DO UPDATE SET"
                    " last_seq = excluded.last_seq, closed = excluded.closed, record = excluded.record",
                    calls,
                )
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # the first error says more
                db.execute("ROLLBACK")
            raise

    def _call_rows(self, condition: str, value: int | str) -> list[CallRow]:
        try:
            rows = self._connection().execute(
                f"SELECT call_id, last_seq, closed, record FROM calls {condition}", (value,)
            )
            return [CallRow(call_id, last_seq, bool(closed), record) for call_id, last_seq, closed, record in rows]
        except sqlite3.Error as error:
            self._fall_back(error)
            return []

    def _newest_seqs(self) -> dict[str, int]:
        try:
            return dict(self._connection().execute("SELECT call_id, max(seq) FROM events GROUP BY call_id"))
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
        by_age = (
            self._connection()
            .execute("SELECT max(offset) FROM events WHERE offset <= ? AND utime < ?", (step, oldest))
            .fetchone()[0]
        )
        return min(max(by_count, by_size, by_age or 0), step, self._last - 1)

    def _drop_events(self, cut: int) -> None:
        db = self._connection()
        db.execute("BEGIN IMMEDIATE")
        try:
            # A call that is open outlives its events: how far it got must not be forgotten.
            seqs = db.execute("SELECT max(seq), call_id FROM events WHERE offset <= ? GROUP BY call_id", (cut,))
            db.executemany("UPDATE calls SET last_seq = max(last_seq, ?) WHERE call_id = ?", seqs.fetchall())
            db.execute("DELETE FROM events WHERE offset <= ?", (cut,))
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise
        self._first = cut + 1

    def _fall_back(self, error: sqlite3.Error) -> None:
        """Go on in memory; what was in the file is out of reach. Raises the error if memory itself fails."""
        if self._db is not None and self.path is None:
            raise error
        self.state = f"memory: {error}"
        _logger.error("the journal %s fails (%s); from offset %d on events are in memory only",
                      self.path, error, self._last + 1)  # fmt: skip
        self._close_db()
        if self.path is not None:
            if _is_damaged(error):
                self._set_aside(self.path, error)
            elif self._opened:
                self._leave(self.path)
            elif self.path.exists() or _has_predecessor(self.path):
                self._begin_anew()
            if _is_refusal(error):
                self._home = self.path
        self.path = None
        self._use(sqlite3.connect(":memory:", isolation_level=None))
        self._first = self._last + 1

    def _leave(self, path: Path) -> None:
        """Move a file aside that is good as far as it goes, with its write-ahead log. A new name needs no room."""
        aside = f"{path.name}{_LEFT}{clock.utime()}"
        try:
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    path.with_name(path.name + suffix).rename(path.with_name(aside + suffix))
        except OSError as error:
            _logger.error("the journal %s can't be moved aside: %s", path, error)

    def _set_aside(self, path: Path, error: sqlite3.Error) -> bool:
        aside = path.with_name(f"{path.name}{_DAMAGED}{clock.utime()}")
        try:
            path.rename(aside)
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        except OSError as second:
            _logger.error("the damaged journal %s can't be moved aside: %s", path, second)
            return False
        _logger.error("the journal %s is damaged (%s); it was moved to %s", path, error, aside)
        return True

    def _close_db(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            try:
                db.close()
            except sqlite3.Error as error:
                _logger.error("the journal %s could not be closed well: %s", self.path, error)


def _has_predecessor(path: Path) -> bool:
    """Whether a journal of that name was moved aside."""
    return any(path.parent.glob(f"{path.name}{_DAMAGED}*")) or any(path.parent.glob(f"{path.name}{_LEFT}*"))


def _is_refusal(error: sqlite3.Error) -> bool:
    """Whether the disk is to blame, which may be different later."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _REFUSED


def _is_damaged(error: sqlite3.Error) -> bool:
    """Whether the file itself is bad, not the disk or the rights to it."""
    return type(error) is sqlite3.DatabaseError
