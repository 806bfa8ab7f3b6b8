"""The sequence of a hub's events: which numbers are given, in the one row of ``fleet``."""

from __future__ import annotations

import logging
import secrets
import threading

from dimos_streams.hub.storage.engines.engine import Engine, Transaction
from dimos_streams.hub.storage.rows import KeptRange

_logger = logging.getLogger(__name__)


class EventSequence:
    """The sequence of numbers, and what of it is known here.

    No number is given to two events, also where the database has lost the newest of what it had, as a standby has
    that was promoted. The row names the server by which numbers are given; whichever hub comes first to another one
    goes on so far behind what it knows that no hub and no reader has seen a number that is given then. So nobody has
    to be told that numbers mean other events: those that were lost stay empty, and readers pass over them.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.last = 0
        """The newest number that was seen here. Whoever gives numbers makes room behind them, so that other hubs have
        some, too."""
        self.losses = 0
        """The number of times that numbers were passed over since this was made, by whichever hub."""
        self._skipped_upto: int | None = None
        self._guard = threading.Lock()

    def begin(self, db: Transaction, *, is_new: bool) -> str:
        """Begin with a database whose tables are there, and with ``is_new`` were just made; return its history."""
        if is_new:
            made = secrets.token_urlsafe(9)
            db.run("UPDATE fleet SET history = ?, server = ?", made, self._engine.server(db))
        self.resume(db)
        return str(db.rows("SELECT history FROM fleet")[0][0])

    def saw(self, seq: int) -> None:
        """Note that a number is given."""
        self.last = max(self.last, seq)

    def bounds(self, db: Transaction) -> KeptRange:
        """The oldest number that is kept, and the newest one."""
        first, last, skipped_upto = db.rows("SELECT first_seq, last_seq, skipped_upto FROM fleet")[0]
        self.saw(last)
        self._note(skipped_upto)
        return KeptRange(first, last)

    def take(self, db: Transaction, count: int) -> tuple[int, int]:
        """Give ``count`` numbers; return the last of them, and the version of the tables. Nobody else is given any
        before the transaction ends."""
        given = "UPDATE fleet SET last_seq = last_seq + ? RETURNING last_seq, schema_version"
        last, version = db.rows(given, count)[0]
        if last - count < self.last:  # a copy was put back over a connection that goes on
            db.run("UPDATE fleet SET last_seq = last_seq - ?", count)
            self.resume(db)
            last, version = db.rows(given, count)[0]
        return last, version

    def resume(self, db: Transaction) -> None:
        """Pass over all numbers that anybody may have seen, if the database is on another server than the one by
        which numbers were given, or has lost some. Nothing is noted here before that is there to stay."""
        # To change a row is to lock it, in both engines.
        last, given_by = db.rows("UPDATE fleet SET last_seq = last_seq RETURNING last_seq, server")[0]
        server = self._engine.server(db)
        if given_by == server and last >= self.last:
            return
        behind = max(last, self.last) + self._engine.partition  # for so many there is room already
        db.run(
            "UPDATE fleet SET last_seq = ?, server = ?, skipped = skipped + ?, skipped_upto = ?",
            behind, server, behind - last, behind,
        )  # fmt: skip

    def _note(self, skipped_upto: int) -> None:
        with self._guard:
            before = self._skipped_upto
            self._skipped_upto = max(skipped_upto, before or 0)  # threads read it at different times
            if before is None or skipped_upto <= before:
                return
            self.losses += 1
        _logger.warning(
            "the hub's database %s is on another server than before, or put back from a copy, and may have lost the"
            " newest events: the sequence goes on behind %d, and robots ship again what they still have",
            self._engine.where,
            skipped_upto,
        )
