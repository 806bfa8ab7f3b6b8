"""SQLite: the embedded database, for a hub of one process."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dimos_streams import clock
from dimos_streams.common.process.disk import at_home
from dimos_streams.common.secrets import unreadable_url
from dimos_streams.errors import UserError
from dimos_streams.hub.storage.engines.disk_room import check_room
from dimos_streams.hub.storage.engines.engine import Engine, Row, Transaction, Wake, check_tables
from dimos_streams.hub.storage.engines.oldest_rows import drop_rows_before, first_without_rows
from dimos_streams.hub.storage.engines.sqlite_file import SqliteFile
from dimos_streams.hub.storage.engines.write_turns import WriteTurns
from dimos_streams.hub.storage.rows import KeptRange, StorageUnavailableError

_BUSY_S = 10.0
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'"


class SqliteEngine(Engine):
    """An SQLite file. It belongs to one process, which holds a lock beside it: beside the file itself, whatever link
    leads there."""

    identity = "integer PRIMARY KEY AUTOINCREMENT"
    numbering = (
        "INSERT INTO sqlite_sequence SELECT 'commands', ? WHERE ? AND 'commands' NOT IN"
        " (SELECT name FROM sqlite_sequence)",
        "UPDATE sqlite_sequence SET seq = max(?, seq + ?) WHERE name = 'commands'",
    )
    partitioned = ""
    text_bytes = "length(CAST({} AS BLOB))"
    has_one_writer = True

    def __init__(self, path: Path, *, partition: int) -> None:
        self.where = str(path)
        self._file = SqliteFile(path)
        self.partition = partition
        self._local = threading.local()
        self._guard = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._epoch_us: int | None = None
        self._turns = WriteTurns()

    def take(self) -> None:
        """Make this the only process that serves from the file. Raises ``UserError`` if there is one."""
        with self.reading():
            pass  # what is no hub's database gets no lock beside it
        self._file.take()

    def check_there(self) -> None:
        """See ``Engine``."""
        self._file.check_there()

    def transaction(self) -> AbstractContextManager[Transaction]:
        """See ``Engine``."""
        return self._writing()

    def reading(self) -> AbstractContextManager[Transaction]:
        """See ``Engine``."""
        return self._begin("BEGIN")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._turns.turn(_BUSY_S))
            except TimeoutError as error:
                self.trouble = text = f"the hub's database {self.where}: {error}"
                raise StorageUnavailableError(text) from error
            yield stack.enter_context(self._begin("BEGIN IMMEDIATE"))

    @contextlib.contextmanager
    def _begin(self, how: str) -> Iterator[Transaction]:
        if change := self._file.change:
            self.trouble = change
            raise StorageUnavailableError(change)
        try:
            db = self._connection()
            db.execute(how)
            try:
                transaction = _SqliteTransaction(db, self._epoch())
                self._check_history(transaction)
                yield transaction
                db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # the first error says more
                    db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            if self.history and str(error).startswith(("no such table", "no such column")):
                raise self._replaced("tables are missing") from error
            self.trouble = text = f"the hub's database {self.where}: {error}"
            raise StorageUnavailableError(text) from error

    def tables(self, transaction: Transaction) -> set[str]:
        """See ``Engine``."""
        return {str(name) for (name,) in transaction.rows(_TABLES)}

    def lock_schema(self, transaction: Transaction) -> None:
        """See ``Engine``: a transaction that writes is alone."""

    def make_room(self, last_seq: int) -> None:
        """See ``Engine``: a table has no partitions here."""

    def check_disk(self) -> None:
        """See ``Engine``."""
        check_room(self._file.path, lambda: self._room()[1])

    def partition_start(self, transaction: Transaction, seq: int) -> int:
        """See ``Engine``: as if there were partitions."""
        return seq - (seq - 1) % self.partition

    def first_without(self, kept: KeptRange, excess: int) -> int:
        """See ``Engine``."""
        return first_without_rows(self, kept, excess)

    def drop_before(self, seq: int) -> None:
        """See ``Engine``."""
        drop_rows_before(self, seq)

    def used(self) -> int:
        """See ``Engine``."""
        return self._room()[0]

    def _room(self) -> tuple[int, int]:
        """The bytes of the file that are used, and those that are free in it."""
        with self.reading() as db:
            names = ("page_count", "freelist_count", "page_size")
            pages, free, size = (int(db.rows(f"PRAGMA {name}")[0][0]) for name in names)
        return (pages - free) * size, free * size

    def size(self) -> int:
        """See ``Engine``."""
        return self._file.size()

    def listen(self, wake: Wake) -> None:
        """See ``Engine``: there is no other hub."""

    def close(self) -> None:
        """See ``Engine``."""
        with self._guard:
            connections, self._connections = self._connections, []
        for db in connections:
            db.close()
        self._file.release()

    def _epoch(self) -> int:
        """The time to which the steady clock's reading is added, in µs: by the wall clock as it was when the file was
        opened, so that setting the clock meanwhile makes nothing older or newer."""
        with self._guard:
            if self._epoch_us is None:
                self._epoch_us = clock.utime() - _steady_us()
            return self._epoch_us

    def _connection(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            self._file.make_new()
            # Closed by another thread than its own, which has ended by then.
            db = sqlite3.connect(self._file.path, isolation_level=None, timeout=_BUSY_S, check_same_thread=False)
            try:
                self._check_own(db)
                self._file.make_private()
                db.execute("PRAGMA journal_mode=WAL")
                # What a robot was told to be stored it may forget: no commit may be lost with the power.
                db.execute("PRAGMA synchronous=FULL")
                # To write over what is dropped would take as long as to write it, and as much of the disk.
                db.execute("PRAGMA secure_delete=OFF")
            except BaseException:
                db.close()
                raise
            with self._guard:
                self._connections.append(db)
                self._file.note_opened()
            self._local.db = db
        return db

    def _check_own(self, db: sqlite3.Connection) -> None:
        """Raise ``UserError`` for a file that is another program's, before anything of it is changed."""
        try:
            tables = {str(name) for (name,) in db.execute(_TABLES)}
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                raise
            raise self._file.unusable(error) from error
        check_tables(tables, self.where)


def sqlite_engine(url: str, *, partition: int) -> SqliteEngine:
    """The engine of a URL such as ``sqlite:///hub.sqlite``. Raises ``UserError``."""
    parts = urlsplit(url)
    path = unquote(parts.path)[1:]
    if parts.netloc or parts.query or not path:
        raise UserError(
            f"--database {unreadable_url(url)!r} names no file; valid: sqlite:///FILE (a relative path), sqlite:////DIR/FILE"
        )
    return SqliteEngine(at_home(path), partition=partition)


def _steady_us() -> int:
    return int(clock.steady() * 1e6)


class _SqliteTransaction(Transaction):
    def __init__(self, db: sqlite3.Connection, epoch_us: int) -> None:
        self._db = db
        self._epoch_us = epoch_us

    def rows(self, statement: str, *values: object) -> list[Row]:
        return self._db.execute(statement, values).fetchall()

    def each(self, statement: str, *values: object) -> AbstractContextManager[Iterator[Row]]:
        # Closed also where not all was asked for: the log could not be emptied beside a statement that goes on.
        return contextlib.closing(self._db.execute(statement, values))

    def run(self, statement: str, *values: object) -> int:
        return self._db.execute(statement, values).rowcount

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        self._db.executemany(statement, rows)

    def insert_events(self, rows: Sequence[Row]) -> None:
        self._db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def now(self) -> int:
        return self._epoch_us + _steady_us()

    def date(self) -> int:
        return clock.utime()

    def notify(self, channel: str) -> None:
        """Do nothing: nobody else reads the file."""
