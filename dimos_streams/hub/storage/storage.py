"""The storage of a hub: events of all robots in one sequence, the robots, their calls, and commands for them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from dimos_streams import __version__, clock
from dimos_streams.errors import UserError
from dimos_streams.hub.storage.calls import CallTable
from dimos_streams.hub.storage.commands import CommandTable
from dimos_streams.hub.storage.engines.engine import EVENTS, Engine, Row, Transaction, check_tables
from dimos_streams.hub.storage.engines.urls import shown
from dimos_streams.hub.storage.history_bounds import HistoryBounds
from dimos_streams.hub.storage.locked_journals import LockedJournals
from dimos_streams.hub.storage.robots import RobotTable
from dimos_streams.hub.storage.rows import (
    BatchEntry,
    KeptRange,
    Retention,
    RobotBatch,
    TakeAnswer,
    WrongSchemaError,
)
from dimos_streams.hub.storage.schema import MIGRATIONS, SCHEMA
from dimos_streams.hub.storage.sequence import EventSequence
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.journal.query import (
    SPAN,
    Query,
    QueryBack,
    Read,
    ReadBack,
    condition_of,
    make_page,
    make_page_back,
)

PARTITION = 1_000_000
"""Number of events that are dropped together."""
_US = 1_000_000
_AHEAD = 1 << 20
"""More commands than hubs give between a copy of a database and its return."""
_SELECT = "SELECT seq, call_id, caller, type, robot, body FROM events"


class HubStorage:
    """The storage of a hub. Its methods wait for the database, each in one transaction: call them from threads.

    ``store`` gives events their numbers. It takes the numbers from one row, whose lock it holds until its commit; so
    the order of numbers is the order of commits, none is left out, and whoever sees a number has all before it.

    All methods raise ``StorageUnavailableError``, and those that write ``WrongSchemaError``.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.robots = RobotTable(engine)
        self.calls = CallTable(engine)
        self.commands = CommandTable(engine)
        self.noted_at = clock.monotonic()
        """The time at which the database last took a note that this hub is there, on ``clock.monotonic``."""
        self.sequence = EventSequence(engine)
        self.history = HistoryBounds(engine, self.sequence, self.calls)

    def open(self, *, migrate: bool = False) -> int:
        """Make the tables if there are none; return the version that they had, 0 if they were made.

        Raises ``WrongSchemaError`` for tables of another version, unless they are older and ``migrate`` is given.
        """
        self.engine.history = ""
        with self.engine.transaction() as db:
            self.engine.lock_schema(db)
            version = self._version(db)
            if version > SCHEMA:
                raise self._wrong_schema(version, "upgrade this hub")
            if 0 < version < SCHEMA and not migrate:
                raise self._wrong_schema(
                    version, "stop all hubs that use it, then `dimos-streams hub migrate --database …`"
                )
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    filled = statement.replace("{identity}", self.engine.identity)
                    db.run(filled.replace("{partitioned}", self.engine.partitioned))
            if version < SCHEMA:
                db.run("UPDATE fleet SET schema_version = ?", SCHEMA)
            self._number_commands_anew(db)
            history = self.sequence.begin(db, is_new=version == 0)
        self.engine.history = history
        self.commands.void_later()
        self.engine.on_reconnect(self._resume)
        self.engine.make_room(self.bounds().last)
        return version

    def close(self) -> None:
        """Let go of the database. Twice is fine."""
        self.engine.close()

    def now(self) -> int:
        """The time by the database's clock, µs since the Unix epoch."""
        with self.engine.reading() as db:
            return db.now()

    def position(self, robot: str, journal: str) -> int:
        """The offset up to which a journal is stored, 0 if nothing of it is."""
        with self.engine.reading() as db:
            rows = db.rows("SELECT acknowledged FROM journals WHERE robot = ? AND journal = ?", robot, journal)
        return int(rows[0][0]) if rows else 0

    def store(self, batches: Sequence[RobotBatch]) -> list[TakeAnswer]:
        """Store what is new in batches, in their order and in one transaction; return what became of each."""
        self.history.check_room()
        self.engine.check_disk()
        self.engine.make_room(self.sequence.last + sum(len(batch.entries) for batch in batches))
        with self.engine.transaction() as db:
            journals = LockedJournals(db, {(batch.robot, batch.journal) for batch in batches})
            answers = [journals.take(batch) for batch in batches]
            if not journals.fresh:
                return answers
            last, version = self.sequence.take(db, len(journals.fresh))
            if version != SCHEMA:
                raise self._wrong_schema(version, "another hub has changed it: upgrade this one")
            stored, first = db.date(), last - len(journals.fresh) + 1
            numbered = list(enumerate(journals.fresh, first))
            db.insert_events([_event_row(seq, stored, *fresh) for seq, fresh in numbered])
            journals.acknowledge(stored)
            self.calls.fold(db, [(seq, robot, entry) for seq, (robot, _, entry) in numbered])
            db.notify(EVENTS)
        self.sequence.saw(last)
        return answers

    def bounds(self) -> KeptRange:
        """The oldest number that is kept, and the newest one; of a server that stands in for another, those that no
        hub has seen."""
        with self.engine.transaction() as db:
            return self.sequence.bounds(db)

    def read(self, query: Query, limit: int, max_bytes: int, last: int | None = None) -> Read:
        """Up to ``limit`` events of ``max_bytes`` together, at least one, none behind ``last``. Looks at a bounded
        span: ask again."""
        with self.engine.reading() as db:
            first, newest = self.sequence.bounds(db)
            last = newest if last is None else min(last, newest)
            behind = max(query.after, first - 1)
            if behind + SPAN < last:
                behind = _next(db, behind, last) - 1
            upto = max(query.after, min(behind + SPAN, last))
            condition, values = condition_of(caller=query.caller, call_id=query.call_id, robot=query.robot)
            with db.each(
                f"{_SELECT} WHERE seq > ? AND seq <= ?{condition} ORDER BY seq LIMIT ?",
                query.after, upto, *values, limit,
            ) as rows:  # fmt: skip
                return make_page(map(_entry, rows), upto, first, limit, max_bytes)

    def read_back(self, query: QueryBack, limit: int, max_bytes: int) -> ReadBack:
        """Up to ``limit`` events of ``max_bytes`` together, at least one, for a reader that looks back: the newest
        ones before a number. Looks at a bounded span: ask again."""
        with self.engine.reading() as db:
            first, last = self.sequence.bounds(db)
            before = min(query.before, last + 1)
            if before - SPAN > first:
                before = _previous(db, before, first) + 1
            since = max(before - SPAN, first)
            condition, values = condition_of(caller=query.caller, call_id=query.call_id, robot=query.robot)
            with db.each(
                f"{_SELECT} WHERE seq >= ? AND seq < ?{condition}{query.no_progress} ORDER BY seq DESC LIMIT ?",
                since, before, *values, limit,
            ) as rows:  # fmt: skip
                return make_page_back(map(_entry, rows), since, first, limit, max_bytes)

    def trim(self, retention: Retention) -> KeptRange:
        """Forget what is older than it has to be; return the bounds of what is kept."""
        self.commands.forget(retention.command_s)
        self.history.trim(retention)
        return self.bounds()

    def others(self, name: str, url: str, valid_s: float) -> list[tuple[str, str, str]]:
        """Note that this hub is there; return name, version and URL of the other hubs."""
        with self.engine.transaction() as db:
            now = db.now()
            db.run(
                "INSERT INTO hubs VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
                " version = excluded.version, url = excluded.url, until = excluded.until",
                name, __version__, url, now + int(valid_s * _US),
            )  # fmt: skip
            db.run("DELETE FROM hubs WHERE until < ?", now - 3600 * _US)
            rows = db.rows("SELECT name, version, url FROM hubs WHERE name <> ? AND until >= ?", name, now)
        self.noted_at = clock.monotonic()
        return [(str(other), str(version), str(at)) for other, version, at in rows]

    def leave(self, name: str) -> None:
        """Note that this hub is gone."""
        with self.engine.transaction() as db:
            db.run("DELETE FROM hubs WHERE name = ?", name)

    def _resume(self, db: Transaction) -> None:
        self._number_commands_anew(db)
        self.sequence.resume(db)

    def _number_commands_anew(self, db: Transaction) -> None:
        """A database that was put back from a copy must not number a command as one that robots know: an answer to
        that would be taken for its answer, and what an order to stop has overtaken for newer than that. The clock
        sees to it, or where it was set back, chance."""
        for statement in self.engine.numbering:
            db.run(statement, db.date(), _AHEAD + secrets.randbelow(_AHEAD))

    def _version(self, db: Transaction) -> int:
        """The version of the tables, 0 if there are none. Raises ``WrongSchemaError`` for another program's, and
        for those that were emptied."""
        tables = self.engine.tables(db)
        check_tables(tables, self.engine.where)
        if not tables:
            return 0
        for (version,) in db.rows("SELECT schema_version FROM fleet"):
            return int(version)
        raise WrongSchemaError(
            f"the tables of the database {self.engine.where} were emptied: put a copy back, or drop them all, and a"
            " hub makes new ones"
        )

    def _wrong_schema(self, version: int, what_to_do: str) -> WrongSchemaError:
        return WrongSchemaError(
            f"the database {self.engine.where} has schema {version}, and this hub (version {__version__}) uses"
            f" schema {SCHEMA}: {what_to_do}"
        )


def open_engine(url: str, *, partition: int = PARTITION) -> Engine:
    """The engine of a database's URL; nothing is opened yet. Raises ``UserError``."""
    from dimos_streams.hub.storage.engines.postgres import PostgresEngine
    from dimos_streams.hub.storage.engines.sqlite import sqlite_engine

    scheme = url.partition("://")[0]
    if scheme in ("postgresql", "postgres"):
        return PostgresEngine(url, partition=partition)
    if scheme == "sqlite":
        return sqlite_engine(url, partition=partition)
    raise UserError(
        f"--database {shown(scheme)[:50]!r} is of no kind that a hub knows; valid: sqlite:///FILE (a relative path),"
        " sqlite:////DIR/FILE, postgresql://HOST/NAME with a user before HOST"
    )


def _event_row(seq: int, stored: int, robot: str, journal_id: int, entry: BatchEntry) -> Row:
    return (
        seq, stored, robot, journal_id, entry.last, entry.call_id, entry.caller, entry.type, entry.body,
    )  # fmt: skip


def _entry(row: Row) -> EncodedEntry:
    """A row as readers get it: the event's JSON with the robot in it."""
    seq, call_id, caller, kind, robot, body = row
    whole = b'%b,"robot":"%b"}' % (body[:-1].encode(), robot.encode())
    return EncodedEntry(seq, call_id, caller, kind, whole, robot=robot)


def _next(db: Transaction, seq: int, last: int) -> int:
    """The first number behind another one, up to ``last``, that is an event's; ``last`` if none is."""
    rows = db.rows("SELECT seq FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT 1", seq, last)
    return int(rows[0][0]) if rows else last


def _previous(db: Transaction, seq: int, first: int) -> int:
    """The last number before another one, down to ``first``, that is an event's; ``first`` if none is."""
    rows = db.rows("SELECT seq FROM events WHERE seq < ? AND seq >= ? ORDER BY seq DESC LIMIT 1", seq, first)
    return int(rows[0][0]) if rows else first
