"""The journals of which a transaction stores something: what of it is new, and how far each is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dimos_streams.common.json.canonical import is_same_json
from dimos_streams.hub.storage.engines.engine import Transaction
from dimos_streams.hub.storage.rows import BatchEntry, Conflicting, NotNext, RobotBatch, TakeAnswer, Taken


class LockedJournals:
    """The journals of some batches, locked; which entries are new, and how far each journal is stored."""

    def __init__(self, db: Transaction, keys: Iterable[tuple[str, str]]) -> None:
        self._db = db
        self._known: dict[tuple[str, str], tuple[int, int]] = {}
        """The id of each journal, and the offset up to which it is stored; -1 where nothing is."""
        self._changed: set[tuple[str, str]] = set()
        self.fresh: list[tuple[str, int, BatchEntry]] = []
        """The new entries: robot, id of the journal, and entry."""
        for robot, journal in sorted(keys):  # in one order, so that no two hubs wait for each other
            db.run(
                "INSERT INTO journals (robot, journal, acknowledged, stored) VALUES (?, ?, -1, ?)"
                " ON CONFLICT (robot, journal) DO NOTHING",
                robot, journal, db.date(),
            )  # fmt: skip
            # To change a row is to lock it, in both engines.
            row = db.rows(
                "UPDATE journals SET acknowledged = acknowledged WHERE robot = ? AND journal = ?"
                " RETURNING id, acknowledged",
                robot, journal,
            )[0]  # fmt: skip
            self._known[robot, journal] = (row[0], row[1])

    def take(self, batch: RobotBatch) -> TakeAnswer:
        """Sort the entries of a batch into stored and new ones, and return what became of it."""
        key = batch.robot, batch.journal
        id, upto = self._known[key]
        if upto >= 0 and batch.entries[0].first > upto + 1:
            return NotNext(upto)
        before = [entry for entry in batch.entries if entry.first <= upto]
        if before and (offset := self._conflict(id, before)):
            return Conflicting(offset)
        fresh = [entry for entry in batch.entries if entry.last > upto]
        self.fresh += [(batch.robot, id, entry) for entry in fresh]
        if fresh:
            self._known[key] = (id, fresh[-1].last)
            self._changed.add(key)
        return Taken(max(upto, batch.entries[-1].last))

    def acknowledge(self, stored: int) -> None:
        """Write down how far each journal is stored now."""
        rows = [(self._known[key][1], stored, self._known[key][0]) for key in sorted(self._changed)]
        self._db.many("UPDATE journals SET acknowledged = ?, stored = ? WHERE id = ?", rows)

    def _conflict(self, id: int, entries: Sequence[BatchEntry]) -> int:
        """The first offset at which another event is stored, or has come in this transaction; 0 if there is none.

        Where either side has a gap there is nothing to compare: a robot may have trimmed what it had sent before.
        """
        stored = {
            offset: body
            for offset, kind, body in self._db.rows(
                "SELECT journal_offset, type, body FROM events"
                " WHERE journal_id = ? AND journal_offset >= ? AND journal_offset <= ?",
                id, entries[0].first, entries[-1].last,
            )
            if kind != "gap"
        }  # fmt: skip
        stored |= {entry.last: entry.body for _, of, entry in self.fresh if of == id and entry.type != "gap"}
        for entry in entries:
            if entry.type != "gap" and not is_same_json(stored.get(entry.last, entry.body), entry.body):
                return entry.last
        return 0
