"""Queries of the journal: entries behind an offset, looked for within a bounded span."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from dimos_streams.bridge.journal.entry import EncodedEntry

SPAN = 4096
"""Offsets that one read looks at: bounds its time (about 1 ms) however rare the events are that it wants."""


class Read(NamedTuple):
    """Entries found, and the offset up to which the journal was searched for them."""

    entries: list[EncodedEntry]
    upto: int
    first: int
    """The oldest offset that was kept then; what is missing before it was there once."""


class Query(NamedTuple):
    """A reader's query: entries behind an offset, of one caller or call if it says so."""

    after: int
    caller: str | None = None
    call_id: str | None = None
    robot: str | None = None
    """At a fleet hub only: the journal of a bridge is one robot's."""

    def wants(self, entry: EncodedEntry) -> bool:
        """Whether an entry is one of those, apart from its offset."""
        return (
            (self.caller is None or entry.caller == self.caller)
            and (self.call_id is None or entry.call_id == self.call_id)
            and (self.robot is None or entry.robot == self.robot)
        )

    def run(self, db: sqlite3.Connection, first: int, last: int, limit: int, max_bytes: int) -> Read:
        """Find up to ``limit`` entries of ``max_bytes`` together, at least one, in offsets ``first`` to ``last``.

        Looks at a bounded span, so ask again behind ``upto``. Raises ``sqlite3.Error``.
        """
        upto = min(max(self.after, first - 1) + SPAN, last)
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
