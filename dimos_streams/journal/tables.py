"""The database of a journal: its tables, and the statements that write, read and trim them.

All functions raise ``sqlite3.Error``; what becomes of the journal then is for the journal to say.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dimos_streams import clock
from dimos_streams.common.process.disk import why_endless
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.tool_stream.event import ToolEvent

APPLICATION_ID = 0x64537472
"""SQLite's mark of a journal's file."""
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS events"
    " (offset INTEGER PRIMARY KEY, utime INTEGER, call_id TEXT, seq INTEGER, caller TEXT, type TEXT, body BLOB)",
    "CREATE TABLE IF NOT EXISTS calls"
    " (number INTEGER PRIMARY KEY, call_id TEXT UNIQUE, last_seq INTEGER, closed INTEGER, record TEXT)",
    "CREATE TABLE IF NOT EXISTS identity (journal_id TEXT, begin INTEGER)",
    "CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
)
_STATEMENTS = frozenset(statement.replace(" IF NOT EXISTS", "") for statement in _SCHEMA)
"""The statements as SQLite remembers them."""
CACHE_KB = 512
"""Size of a connection's page cache, in KiB: what is written and read is at the journal's end, or read once."""
_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)"


class CallRow(NamedTuple):
    """The row that the journal keeps of a call besides its events. ``record`` is the broker's own JSON."""

    call_id: str
    last_seq: int
    closed: bool
    record: str


Row = tuple[int, int, str, int, str, str, bytes]
"""The row of an event in the journal: offset, time of journalling in µs since the Unix epoch, call, seq, caller,
type, and the event as JSON."""


class Identity(NamedTuple):
    """The name of a journal, the same for as long as its offsets mean the same events, and its first offset ever."""

    journal_id: str
    begin: int


def new_identity(begin: int) -> Identity:
    """An identity with a name that no other journal has. It comes neither from the run's seed nor from the clock
    alone: a robot that does not know the time when it starts has both twice."""
    return Identity(secrets.token_hex(8), begin)


def open_memory() -> sqlite3.Connection:
    """An empty database in memory."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(db)
    return db


def open_file(path: Path) -> sqlite3.Connection:
    """A journal's file, made if there is none. Another program's database is an error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise sqlite3.OperationalError(str(error)) from error
    db = sqlite3.connect(path, isolation_level=None, timeout=1.0)
    try:
        owner = db.execute("PRAGMA application_id").fetchone()[0]
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and owner != APPLICATION_ID:
            raise sqlite3.OperationalError(f"{path} is another program's database")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute(f"PRAGMA cache_size=-{CACHE_KB}")
        # Checkpoints wait for the disk; Journal.checkpoint does them in a thread long before this many pages.
        db.execute("PRAGMA wal_autocheckpoint=50000")
        with transaction(db):  # one for all, which also shows at once that a disk takes nothing
            db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            create_tables(db)
    except BaseException:
        db.close()
        raise
    return db


def open_read_only(path: Path) -> sqlite3.Connection:
    """A journal's file that nobody writes, and that stays as it is, with all beside it but SQLite's own index of a
    write-ahead log. One that is not there is an error, and so is what is no journal, or could keep a reader busy by
    more than its size. Raises ``OSError`` too."""
    if path.exists() and (why := why_endless(path.stat())):
        raise OSError(why)
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    db = _connect_for_reading(path, "" if has_log else "&immutable=1")  # else it would begin a log
    try:
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise sqlite3.OperationalError("it is another program's database")
        if any(sql not in _STATEMENTS for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL")):
            raise sqlite3.OperationalError("its tables are not those of a journal")
    except BaseException:
        db.close()
        raise
    return db


def rows_after(db: sqlite3.Connection, offset: int, most: int, most_bytes: int) -> list[Row]:
    """The events behind an offset, until there are ``most``, or their JSON has ``most_bytes``."""
    rows: list[Row] = []
    size = 0
    with contextlib.closing(
        db.execute("SELECT * FROM events WHERE offset > ? ORDER BY offset LIMIT ?", (offset, most))
    ) as found:
        for row in found:
            rows.append(row)
            size += len(row[-1])
            if size >= most_bytes:
                break
    return rows


def offsets(db: sqlite3.Connection) -> tuple[int, int] | None:
    """The oldest offset and the newest, None if there is no event."""
    # Apart, each is a look at one end of the table; together SQLite would read all of it.
    first, last = db.execute("SELECT (SELECT min(offset) FROM events), (SELECT max(offset) FROM events)").fetchone()
    return None if last is None else (first, last)


def identity(db: sqlite3.Connection) -> Identity | None:
    """The journal's name and first offset; None before they are set."""
    row = db.execute("SELECT journal_id, begin FROM identity").fetchone()
    return None if row is None else Identity(*row)


def set_identity(db: sqlite3.Connection, identity: Identity) -> None:
    """Set the identity of a journal, in place of any before."""
    with transaction(db):
        db.execute("DELETE FROM identity")
        db.execute("INSERT INTO identity VALUES (?, ?)", identity)


def notes(db: sqlite3.Connection, prefix: str) -> dict[str, str]:
    """The notes whose names begin with ``prefix``."""
    rows = db.execute("SELECT name, value FROM notes WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))
    return dict(rows.fetchall())


def set_note(db: sqlite3.Connection, name: str, value: str | None) -> None:
    """Keep a note in place of the one of that name; None forgets it."""
    if value is None:
        db.execute("DELETE FROM notes WHERE name = ?", (name,))
    else:
        db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))


def set_notes(db: sqlite3.Connection, notes: Mapping[str, str]) -> None:
    """Keep notes in place of those of their names."""
    if notes:
        with transaction(db):
            db.executemany("INSERT OR REPLACE INTO notes VALUES (?, ?)", notes.items())


def notes_of(path: Path) -> dict[str, str]:
    """The notes of a journal's file that nobody has open; empty for a file that is no journal."""
    with contextlib.closing(_connect_for_reading(path)) as db:
        owner = db.execute("PRAGMA application_id").fetchone()[0]
        return notes(db, "") if owner == APPLICATION_ID else {}


def rows_of(entries: Iterable[EncodedEntry], events: Sequence[ToolEvent]) -> list[Row]:
    """The rows of events that are journalled now."""
    utime = clock.utime()
    return [
        (entry.offset, utime, entry.call_id, event.seq, entry.caller, entry.type, entry.body)
        for entry, event in zip(entries, events, strict=True)
    ]


def write(db: sqlite3.Connection, rows: Sequence[Row], calls: Sequence[CallRow] = ()) -> None:
    """Keep events, and what is new of their calls, in one transaction."""
    if len(rows) == 1 and not calls:
        db.execute(_INSERT, rows[0])  # one statement is a transaction by itself, and 15 µs shorter
        return
    with transaction(db):
        db.executemany(_INSERT, rows)
        if calls:
            db.executemany(
                "INSERT INTO calls (call_id, last_seq, closed, record) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (call_id) DO UPDATE SET"
                " last_seq = excluded.last_seq, closed = excluded.closed, record = excluded.record",
                calls,
            )


def call_row(db: sqlite3.Connection, call_id: str) -> CallRow | None:
    """The row of one call, None for an unknown one."""
    rows = _call_rows(db, "WHERE call_id = ?", call_id)
    return rows[0] if rows else None


def call_rows(db: sqlite3.Connection, closed: int) -> list[CallRow]:
    """The rows of all open calls and of the newest ``closed`` ones, oldest first; ``newest_seqs`` may be newer."""
    newest = "SELECT number FROM calls WHERE closed ORDER BY number DESC LIMIT ?"
    return _call_rows(db, f"WHERE NOT closed OR number IN ({newest}) ORDER BY number", closed)


def has_open_calls(db: sqlite3.Connection) -> bool:
    """Return whether a call is not closed."""
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM calls WHERE NOT closed)").fetchone()[0])


def newest_seqs(db: sqlite3.Connection) -> dict[str, int]:
    """The seq of the newest event of each call that has any."""
    return dict(db.execute("SELECT call_id, max(seq) FROM events GROUP BY call_id"))


def newest_of_open_calls(db: sqlite3.Connection) -> list[bytes]:
    """The newest event of each call that is not closed, as JSON, in the order of their offsets."""
    newest = "SELECT max(offset) FROM events WHERE call_id IN (SELECT call_id FROM calls WHERE NOT closed)"
    rows = db.execute(f"SELECT body FROM events WHERE offset IN ({newest} GROUP BY call_id) ORDER BY offset")
    return [body for (body,) in rows]


def events_of_call(db: sqlite3.Connection, call_id: str) -> list[bytes]:
    """The events of a call that are kept, as JSON, in the order of their offsets."""
    return [body for (body,) in db.execute("SELECT body FROM events WHERE call_id = ? ORDER BY offset", (call_id,))]


def last_between(db: sqlite3.Connection, begin: int, end: int, upto: int) -> int:
    """The newest offset, not beyond ``upto``, whose event came between two times in µs; 0 for none."""
    query = "SELECT max(offset) FROM events WHERE offset <= ? AND utime >= ? AND utime < ?"
    return db.execute(query, (upto, begin, end)).fetchone()[0] or 0


def drop_events(db: sqlite3.Connection, upto: int) -> None:
    """Forget the events up to an offset. How far an open call got is kept in its row."""
    with transaction(db):
        seqs = db.execute("SELECT max(seq), call_id FROM events WHERE offset <= ? GROUP BY call_id", (upto,))
        db.executemany("UPDATE calls SET last_seq = max(last_seq, ?) WHERE call_id = ?", seqs.fetchall())
        db.execute("DELETE FROM events WHERE offset <= ?", (upto,))


def drop_closed_calls(db: sqlite3.Connection, kept: int) -> None:
    """Forget closed calls that are not among the newest ``kept``."""
    db.execute(
        "DELETE FROM calls WHERE closed"
        " AND number <= (SELECT number FROM calls ORDER BY number DESC LIMIT 1 OFFSET ?)",
        (kept,),
    )


def size(db: sqlite3.Connection) -> int:
    """Bytes in use."""
    pages, free, page_size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * page_size)


def _connect_for_reading(path: Path, more: str = "") -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{more}", uri=True)


def create_tables(db: sqlite3.Connection) -> None:
    """Make the tables of a journal that are not there."""
    for statement in _SCHEMA:
        db.execute(statement)


def _call_rows(db: sqlite3.Connection, condition: str, value: int | str) -> list[CallRow]:
    rows = db.execute(f"SELECT call_id, last_seq, closed, record FROM calls {condition}", (value,))
    return [CallRow(call_id, last_seq, bool(closed), record) for call_id, last_seq, closed, record in rows]


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """One transaction, which leaves nothing behind if it fails."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # the first error says more
            db.execute("ROLLBACK")
        raise
