"""The bounds of a hub's history: what is too old, too much or too large is forgotten."""

from __future__ import annotations

from dimos_streams import clock
from dimos_streams.hub.storage.byte_bound import is_near, is_used, share_of, to_keep
from dimos_streams.hub.storage.calls import CallTable
from dimos_streams.hub.storage.engines.engine import Engine, Transaction
from dimos_streams.hub.storage.rows import KeptRange, Retention, StorageUnavailableError
from dimos_streams.hub.storage.sequence import EventSequence

_US = 1_000_000
JOURNALS = 1000
"""Maximum number of journals of each robot: those that shipped last. A robot that is sound ships those of the runs
that it keeps, a few dozen at most."""
_GONE_DAYS = 60.0
"""Minimum number of days without shipping after which a journal is forgotten, unless its robot writes it now; never
less than twice the retention."""


class HistoryBounds:
    """Keeps the events, calls and journals of a hub within the bounds that it is given."""

    def __init__(self, engine: Engine, sequence: EventSequence, calls: CallTable) -> None:
        self._engine = engine
        self._sequence = sequence
        self._calls = calls
        self._overfull = ""
        """The reason why no events are stored although the database would take them; empty if they are."""

    def check_room(self) -> None:
        """Raise ``StorageUnavailableError`` while more events would be more than the bound."""
        if self._overfull:
            raise StorageUnavailableError(self._overfull)

    def trim(self, retention: Retention) -> None:
        """Forget what is older than it has to be.

        What can't be dropped, as somebody reads it, counts too: nothing more is stored before it may go if that would
        be more than the bound.
        """
        first = self._forget_old(retention)
        self._calls.drop_before(first, share_of(retention.max_bytes))
        try:
            self._drop(first, retention.max_bytes)
        except StorageUnavailableError as error:
            self._refuse_more(retention, error)
            raise
        self._overfull = ""

    def _drop(self, first: int, max_bytes: int) -> None:
        """Drop the events before a number, and more of the oldest if all take too many bytes."""
        self._engine.drop_before(first)
        self._engine.end_partition(share_of(max_bytes))
        while bounds := to_keep(self._engine, self._kept(), max_bytes):
            with self._engine.transaction() as db:
                db.run("UPDATE fleet SET first_seq = ? WHERE first_seq < ?", bounds.first, bounds.first)
            self._calls.drop_before(bounds.first, share_of(max_bytes))
            self._engine.drop_before(bounds.first)
        if is_near(self._engine, max_bytes):
            self._engine.reclaim()

    def _refuse_more(self, retention: Retention, error: StorageUnavailableError) -> None:
        most = retention.max_bytes - share_of(retention.max_bytes)
        if is_used(self._engine, most):
            self._overfull = (
                f"{error}; what is stored takes {most // 1_000_000} of {retention.megabytes} MB (--keep-mb), and the"
                " oldest can't be dropped"
            )

    def _forget_old(self, retention: Retention) -> int:
        """Note the first number that is to be kept by its age and by how many there are; return it. What else is too
        old is forgotten."""
        with self._engine.transaction() as db:
            first, last, skipped = db.rows("SELECT first_seq, last_seq, skipped FROM fleet")[0]
            before = db.date() - int(retention.days * 86_400 * _US)
            # Numbers and times grow together, so the end of what is old is found by halving.
            upto = max(last - skipped - retention.events, _last_before(db, first, last, before))
            first = max(first, self._engine.partition_start(db, upto + 1))
            # Noted before it is so: a hub that is killed in between leaves nothing out that readers are not told of.
            db.run("UPDATE fleet SET first_seq = ? WHERE first_seq < ?", first, first)
            db.run("UPDATE fleet SET skipped = 0 WHERE skipped <> 0 AND skipped_upto < ?", first)
            db.run(
                "DELETE FROM journals WHERE stored >= ? AND stored < ? AND NOT EXISTS"
                " (SELECT 1 FROM robots WHERE robots.name = journals.robot AND robots.journal = journals.journal)",
                clock.KNOWN_FROM_US,
                db.date() - int(max(_GONE_DAYS, 2 * retention.days) * 86_400 * _US),
            )
            db.run(
                "DELETE FROM journals WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY robot"
                " ORDER BY stored DESC, id DESC) AS place FROM journals) AS placed WHERE place > ?)",
                JOURNALS,
            )
        return int(first)

    def _kept(self) -> KeptRange:
        with self._engine.transaction() as db:
            return self._sequence.bounds(db)


def _last_before(db: Transaction, first: int, last: int, stored: int) -> int:
    """The newest number up to which all was stored before a time, ``first - 1`` if nothing was, or if it was stored
    when the hub did not know the time: it is as old as what follows it at most."""
    newest = "SELECT stored FROM events WHERE seq > ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
    low, high = first - 1, last
    while low < high:
        middle = (low + high + 1) // 2
        rows = db.rows(newest, low, middle)
        if not rows or rows[0][0] < stored:  # another hub may have dropped it just now, or its number is no event's
            low = middle
        else:
            high = middle - 1
    rows = db.rows(newest, first - 1, low)
    return first - 1 if rows and rows[0][0] < clock.KNOWN_FROM_US else low
