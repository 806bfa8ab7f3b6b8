"""The interface that a database engine offers to a hub's storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dimos_streams.hub.storage.rows import KeptRange, StorageUnavailableError, WrongSchemaError

Row = tuple[Any, ...]
Wake = Callable[[str], None]
"""Called, from any thread, with the channel on which something is new."""

EVENTS, COMMANDS = "dimos_streams_events", "dimos_streams_commands"
"""The channels for notices between hubs."""
_OF_A_HUB = frozenset({"fleet", "journals", "commands", "hubs"})
"""Tables that together no other program has."""


def check_tables(tables: Collection[str], where: str) -> None:
    """Raise ``WrongSchemaError`` if the tables that a database has are another program's."""
    if tables and not _OF_A_HUB.issubset(tables):
        raise WrongSchemaError(f"the database {where} has tables of another program; give the hub one of its own")


class Transaction(ABC):
    """Statements that take effect together. Parameters stand as ``?``."""

    @abstractmethod
    def rows(self, statement: str, *values: object) -> list[Row]:
        """Execute a statement; return its rows."""

    @abstractmethod
    def each(self, statement: str, *values: object) -> AbstractContextManager[Iterator[Row]]:
        """Execute a statement; its rows come as they are asked for, and what nobody asks for is not fetched."""

    @abstractmethod
    def run(self, statement: str, *values: object) -> int:
        """Execute a statement that has no rows; return how many rows it has changed."""

    @abstractmethod
    def many(self, statement: str, rows: Sequence[Row]) -> None:
        """Execute a statement once for each row of values."""

    @abstractmethod
    def insert_events(self, rows: Sequence[Row]) -> None:
        """Add rows to ``events``, in the order of its columns."""

    @abstractmethod
    def now(self) -> int:
        """The time by the database's clock, µs since the Unix epoch, to tell how long something is valid, or ago."""

    @abstractmethod
    def date(self) -> int:
        """The time by the wall clock, µs since the Unix epoch, however often the clock is set: for what is kept for
        days, over restarts."""

    @abstractmethod
    def notify(self, channel: str) -> None:
        """Wake all hubs that read the same database, once the transaction is over."""


class Engine(ABC):
    """A database. Used from several threads, each of which has a connection of its own.

    Methods raise ``StorageUnavailableError`` where the database does not answer or takes nothing; nothing of the
    transaction at hand has happened then, or it has happened and its end could not be told.
    """

    identity: str
    """The type of a column that numbers its rows."""
    numbering: tuple[str, ...]
    """The SQL by which the commands to come get numbers behind a first value, and a second one or more behind the
    newest number."""
    partitioned: str
    """The SQL that follows the columns of ``events``."""
    where: str
    """The database, as it may be shown."""
    partition: int
    """Number of events in each partition that is not ended by its bytes; the first one begins with number 1."""
    trouble: str = ""
    """The reason why a transaction failed, until the hub has noted again that it is there, and read who
    its robots are; empty without one."""
    text_bytes: str
    """The SQL of the bytes that the text in a column takes, whose name goes into the braces."""
    has_one_writer: bool
    """Whether nobody else writes during a transaction."""
    history: str = ""
    """The history of numbers that the database must have in all transactions; empty where any will do."""

    @abstractmethod
    def check_there(self) -> None:
        """Raise ``UserError`` if there is no database, for commands that only read it; a database server says so
        itself."""

    def on_reconnect(self, resume: Callable[[Transaction], None]) -> None:
        """Have ``resume`` begin the first transaction that writes over each new connection: it may be to another
        server, which stands in for one that has failed and lacks the newest of what that had. A file has no such."""
        return

    def check_connections(self, needed: int) -> None:
        """Raise ``UserError`` if the database does not let a hub have ``needed`` connections at a time;
        a file does."""
        return

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction that is committed at its end, and rolled back by an exception."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that changes nothing; it keeps nobody from writing where an engine can tell."""
        return self.transaction()

    def server(self, transaction: Transaction) -> str:
        """The server that the database is on now, and the tables there, by names that another one can't have, nor the
        same one that stands in for itself as a copy. A file has no such."""
        return ""

    @abstractmethod
    def tables(self, transaction: Transaction) -> set[str]:
        """The names of all tables, whoever has made them."""

    @abstractmethod
    def lock_schema(self, transaction: Transaction) -> None:
        """Wait until nobody else makes or changes tables, up to the end of the transaction."""

    @abstractmethod
    def make_room(self, last_seq: int) -> None:
        """Make sure that there are partitions for the events to come."""

    def check_disk(self) -> None:
        """Raise ``StorageUnavailableError`` if the disk has so little room that no events may take it; a database
        server's disk can't be seen."""
        return

    def end_partition(self, size: int) -> None:
        """End the partition that is being filled if it takes more than ``size`` bytes; rows of a file are dropped one
        by one."""
        return

    @abstractmethod
    def partition_start(self, transaction: Transaction, seq: int) -> int:
        """The first number of the partition that a number is in."""

    @abstractmethod
    def first_without(self, kept: KeptRange, excess: int) -> int:
        """The first number that is kept if the oldest events go that take ``excess`` bytes, or one partition; that
        which is kept already if none can go."""

    @abstractmethod
    def drop_before(self, seq: int) -> None:
        """Drop the events that have lower numbers, in transactions for which nobody waits long; of partitions those
        that have no others."""

    def reclaim(self) -> None:
        """Have the room of what was deleted or written anew used again; that of a file is at once."""
        return

    @abstractmethod
    def used(self) -> int:
        """Bytes that what is stored takes, and dropping events gives back."""

    @abstractmethod
    def size(self) -> int:
        """Bytes that the database uses."""

    @abstractmethod
    def listen(self, wake: Wake) -> None:
        """Begin to call ``wake`` when another hub notifies; now and then it may be missed."""

    @abstractmethod
    def close(self) -> None:
        """Let go of all connections; no thread uses one any more. Twice is fine."""

    def _check_history(self, transaction: Transaction) -> None:
        """Raise ``StorageUnavailableError`` where the tables are not those with which the hub began."""
        if self.history and transaction.rows("SELECT history FROM fleet") != [(self.history,)]:
            raise self._replaced("its tables are empty, or another hub's")

    def _replaced(self, why: str) -> StorageUnavailableError:
        """The error of a database that is not the one with which the hub began."""
        self.trouble = (
            f"the hub's database {self.where} was emptied or replaced while the hub uses it ({why}): put it back, or"
            " restart the hub, which uses what is there then, or begins anew"
        )
        return StorageUnavailableError(self.trouble)
