"""PostgreSQL: several hubs on one database."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.threads import begin_thread
from dimos_streams.errors import UserError
from dimos_streams.hub.storage.engines.engine import COMMANDS, EVENTS, Engine, Row, Transaction, Wake
from dimos_streams.hub.storage.engines.postgres_connections import PostgresConnections
from dimos_streams.hub.storage.engines.postgres_errors import error_line
from dimos_streams.hub.storage.engines.postgres_partitions import (
    add_partition,
    drop_partition,
    end_filled_partition,
    filled_partition,
    look_through,
    partitions,
    used_by_partitions,
)
from dimos_streams.hub.storage.rows import ROW_BYTES, KeptRange, StorageUnavailableError

if TYPE_CHECKING:
    import psycopg

_AHEAD = 2
"""Number of empty partitions behind the one that is being filled."""
_FETCHED = 100
"""Number of rows that a page fetches at once; it may need fewer, if they are large."""
_SCHEMA_LOCK = 0x64537472
"""The key of PostgreSQL's advisory lock for changes of the tables."""
ENDING_LOCK = _SCHEMA_LOCK + 1
"""The key of the one for who ends a partition: nobody who makes another one waits for that."""
_CONNECTION_PROBE_S = 5.0
_RETRY_S = 1.0

_log = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class PostgresEngine(Engine):
    """A database of a PostgreSQL server, 13 or newer."""

    identity = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    numbering = ("SELECT setval('commands_id_seq', greatest(?::bigint, nextval('commands_id_seq') + ?::bigint))",)
    partitioned = " PARTITION BY RANGE (seq)"
    text_bytes = "pg_column_size({})"
    has_one_writer = False

    def __init__(self, url: str, *, partition: int) -> None:
        """Raises ``UserError`` as ``PostgresConnections`` does."""
        self._connections = PostgresConnections(url)
        self.where = self._connections.where
        self.partition = partition
        self._psycopg = self._connections.psycopg
        self._resume: Callable[[Transaction], None] | None = None
        self._local = threading.local()
        """The state of each thread: ``begun``, the connection over which it has written already."""
        self._room_upto = 0
        """The number behind the last partition, as far as the server was asked."""
        self._listener: threading.Thread | None = None

    def on_reconnect(self, resume: Callable[[Transaction], None]) -> None:
        """See ``Engine``."""
        self._resume = resume

    def check_there(self) -> None:
        """See ``Engine``: the server says it."""

    def check_connections(self, needed: int) -> None:
        """See ``Engine``: of its role and its database; superusers have no such limit."""
        with self.transaction() as db:
            limits = db.rows(
                "SELECT 'ROLE', rolname, rolconnlimit FROM pg_roles WHERE rolname = session_user AND NOT rolsuper"
                " UNION ALL SELECT 'DATABASE', datname, datconnlimit FROM pg_database, pg_roles"
                " WHERE datname = current_database() AND rolname = session_user AND NOT rolsuper"
            )
        for kind, name, limit in limits:
            if 0 <= limit < needed:
                raise UserError(
                    f"the hub's database {self.where}: {kind.lower()} {name} may have {limit} connections, and each"
                    f" process of a hub needs {needed}, or its readers could keep out an operator's stop:"
                    f" ALTER {kind} {name} CONNECTION LIMIT {needed}, or so many for each process"
                )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """See ``Engine``."""
        with self._begun() as db:
            if self._resume is not None and getattr(self._local, "begun", None) is not db.connection:
                self._resume(db)
                db.connection.execute("COMMIT")  # others wait for what it has locked
                self._local.begun = db.connection
                db.connection.execute("BEGIN")
            yield db

    def reading(self) -> AbstractContextManager[Transaction]:
        """See ``Engine``."""
        return self._begun()

    @contextlib.contextmanager
    def _begun(self) -> Iterator[_PostgresTransaction]:
        try:
            db = self._connections.begin()
            try:
                transaction = _PostgresTransaction(db)
                self._check_history(transaction)
                yield transaction
                db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(self._psycopg.Error):  # the first error says more
                    db.execute("ROLLBACK")
                raise
        except self._psycopg.Error as error:
            if isinstance(error, self._psycopg.errors.ReadOnlySqlTransaction):
                self._connections.renew()
            self._connections.drop_broken()
            self._room_upto = 0  # partitions may be lacking, too
            lacks = self._psycopg.errors.UndefinedTable, self._psycopg.errors.UndefinedColumn
            if self.history and isinstance(error, lacks):
                self._connections.renew()  # what is put back is met as another server is
                raise self._replaced("tables are missing") from error
            self.trouble = text = f"the hub's database {self.where}: {error_line(error)}"
            raise StorageUnavailableError(text) from error

    def server(self, transaction: Transaction) -> str:
        """See ``Engine``: a standby that was promoted has a timeline of its own. Tables that were put back from a
        dump have other numbers, and so has a database that was made from another one."""
        query = (
            "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8), pg_database.oid, 'fleet'::regclass::oid"
            " FROM pg_database WHERE datname = current_database()"
        )
        return "/".join(map(str, transaction.rows(query)[0]))

    def tables(self, transaction: Transaction) -> set[str]:
        """See ``Engine``."""
        query = (
            "SELECT relname FROM pg_class"
            " WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace"
        )
        return {str(name) for (name,) in transaction.rows(query)}

    def lock_schema(self, transaction: Transaction) -> None:
        """See ``Engine``."""
        transaction.rows("SELECT pg_advisory_xact_lock(?)", _SCHEMA_LOCK)

    def make_room(self, last_seq: int) -> None:
        """See ``Engine``."""
        if last_seq + self.partition < self._room_upto:
            return
        with self.transaction() as db:
            self.lock_schema(db)
            upto = max((each.behind for each in partitions(db)), default=1)
            while upto <= last_seq + _AHEAD * self.partition:
                add_partition(db, upto, upto + self.partition)
                upto += self.partition
        self._room_upto = upto

    def end_partition(self, size: int) -> None:
        """See ``Engine``."""
        with self.transaction() as db:
            filled = filled_partition(db, size)
            if filled is None or db.rows("SELECT pg_try_advisory_xact_lock(?)", ENDING_LOCK) != [(True,)]:
                return  # or another hub is at it
            look_through(db, filled)
            self.lock_schema(db)
            end_filled_partition(db, size)

    def partition_start(self, transaction: Transaction, seq: int) -> int:
        """See ``Engine``."""
        return max((each.first for each in partitions(transaction) if each.first <= seq), default=1)

    def first_without(self, kept: KeptRange, excess: int) -> int:
        """See ``Engine``: behind the oldest partition, unless that is being filled."""
        with self.reading() as db:
            behind = min((each.behind for each in partitions(db) if each.behind > kept.first), default=kept.first)
        return behind if behind <= kept.last + 1 else kept.first

    def drop_before(self, seq: int) -> None:
        """See ``Engine``."""
        with self.transaction() as db:
            old = [each for each in partitions(db) if each.behind <= seq]
        for each in old:
            with self.transaction() as db:
                drop_partition(db, each)

    def reclaim(self) -> None:
        """See ``Engine``: of the records of calls, which are written anew with each event that changes them; the
        server itself looks a minute later, and events go with their partitions. What takes longer than a statement
        may is left to it."""
        with self._begun() as db:
            db.connection.execute("COMMIT")  # in a transaction it can't be done
            with contextlib.suppress(self._psycopg.errors.QueryCanceled):
                db.connection.execute("VACUUM (SKIP_LOCKED) calls")
            db.connection.execute("BEGIN")

    def used(self) -> int:
        """See ``Engine``: partitions on the disk, and the records of calls as long as they are, since what other
        records had is used again."""
        with self.transaction() as db:
            size = self.text_bytes.format("record")
            ((calls, taken),) = db.rows(f"SELECT count(*), coalesce(sum({size}), 0) FROM calls")
            return used_by_partitions(db) + int(calls) * ROW_BYTES + int(taken)

    def size(self) -> int:
        """See ``Engine``."""
        with self.transaction() as db:
            return int(db.rows("SELECT pg_database_size(current_database())")[0][0])

    def listen(self, wake: Wake) -> None:
        """See ``Engine``."""
        self._listener = threading.Thread(target=self._listen, args=(wake,), name="hub listen", daemon=True)
        try:
            begin_thread(self._listener)
        except OSError as error:
            text = f"the hub's database {self.where} can't be listened to: {error.strerror}"
            raise StorageUnavailableError(text) from error

    def close(self) -> None:
        """See ``Engine``."""
        self._connections.close()

    def _listen(self, wake: Wake) -> None:
        while not self._connections.closed.is_set():
            try:
                with self._connections.connect() as db:
                    self._pass_on_notices(db, wake)
            except Exception as error:  # without this thread the hub would only look now and then
                if not self._connections.closed.is_set():
                    _log.warning("the hub's database %s notifies nobody: %s", self.where, error_line(error))
                    self._connections.closed.wait(_RETRY_S)

    def _pass_on_notices(self, db: psycopg.Connection[Any], wake: Wake) -> None:
        """Wake readers at each notice of a connection, until it dies or the engine is closed."""
        for channel in (EVENTS, COMMANDS):
            db.execute(f"LISTEN {channel}")
            wake(channel)  # for what came before
        while not self._connections.closed.is_set():
            for notice in db.notifies(timeout=_CONNECTION_PROBE_S):
                wake(notice.channel)
            db.execute("SELECT 1")  # a connection that is dead says nothing by itself


class _PostgresTransaction(Transaction):
    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self.connection = db

    def rows(self, statement: str, *values: object) -> list[Row]:
        return self.connection.execute(statement.replace("?", "%s"), values or None).fetchall()

    @contextlib.contextmanager
    def each(self, statement: str, *values: object) -> Iterator[Iterator[Row]]:
        # One with a name is the server's. Where that ends meanwhile, only a second attempt closes it here.
        with contextlib.closing(self.connection.cursor(name="page")) as cursor, cursor:
            cursor.itersize = _FETCHED
            yield iter(cursor.execute(statement.replace("?", "%s"), values or None))

    def run(self, statement: str, *values: object) -> int:
        return self.connection.execute(statement.replace("?", "%s"), values or None).rowcount

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        if rows:
            with self.connection.cursor() as cursor:
                cursor.executemany(statement.replace("?", "%s"), rows)

    def insert_events(self, rows: Sequence[Row]) -> None:
        with self.connection.cursor() as cursor, cursor.copy("COPY events FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def now(self) -> int:
        return int(self.rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0])

    def date(self) -> int:
        return self.now()

    def notify(self, channel: str) -> None:
        self.rows("SELECT pg_notify(?, '')", channel)
