"""Queries of the journal: entries behind an offset or before one, looked for within a bounded span."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar

from dimos_streams.journal.entry import EncodedEntry

SPAN = 4096
"""Number of offsets that one read looks at, which bounds its time (about 1 ms) however rare the wanted events are."""


class Read(NamedTuple):
    """Entries found, and the offset up to which the journal was searched for them."""

    entries: list[EncodedEntry]
    upto: int
    first: int
    """The oldest offset that was kept then; what is missing before it was there once."""


class ReadBack(NamedTuple):
    """Entries found before an offset, oldest first, and the offset from which on they were looked for."""

    entries: list[EncodedEntry]
    since: int
    first: int
    """The oldest offset that was kept then."""


FoundT_co = TypeVar("FoundT_co", covariant=True)


class Asked(Protocol[FoundT_co]):
    """A query that a journal can be asked: a ``Query`` or a ``QueryBack``."""

    def run(self, db: sqlite3.Connection, first: int, last: int, limit: int, max_bytes: int) -> FoundT_co:
        """Find up to ``limit`` entries of ``max_bytes`` together, at least one, in offsets ``first`` to ``last``."""

    def nothing(self, first: int | None) -> FoundT_co:
        """The answer of a journal that can't be read. What it keeps begins at offset ``first``, if that is known."""


class Query(NamedTuple):
    """A reader's query: entries behind an offset, of one caller or call if it says so."""

    after: int
    caller: str | None = None
    call_id: str | None = None
    robot: str | None = None
    """The robot that is wanted, at a fleet hub only: the journal of a bridge is one robot's."""

    def wants(self, entry: EncodedEntry) -> bool:
        """Return whether an entry is one that is wanted, apart from its offset."""
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
        condition, values = condition_of(caller=self.caller, call_id=self.call_id)
        rows = db.execute(
            f"{_SELECT} WHERE offset > ? AND offset <= ?{condition} ORDER BY offset LIMIT ?",
            [self.after, upto, *values, limit],
        )
        return make_page(map(_entry, rows), upto, first, limit, max_bytes)

    def nothing(self, first: int | None) -> Read:
        """See ``Asked``."""
        return Read([], self.after, self.after + 1 if first is None else first)


class QueryBack(NamedTuple):
    """A query that looks back: the newest entries before an offset, of one caller or call if it says so."""

    before: int
    caller: str | None = None
    call_id: str | None = None
    robot: str | None = None
    """The robot that is wanted, at a fleet hub only."""
    progress: bool = False
    """True if ``progress`` is wanted too, which can be nearly all that there is and is of little use later."""

    def run(self, db: sqlite3.Connection, first: int, last: int, limit: int, max_bytes: int) -> ReadBack:
        """Find up to ``limit`` entries of ``max_bytes`` together, at least one, in offsets ``first`` to ``last``.

        Looks at a bounded span, so ask again before ``since``. Raises ``sqlite3.Error``.
        """
        before = min(self.before, last + 1)
        since = max(before - SPAN, first)
        condition, values = condition_of(caller=self.caller, call_id=self.call_id)
        rows = db.execute(
            f"{_SELECT} WHERE offset >= ? AND offset < ?{condition}{self.no_progress} ORDER BY offset DESC LIMIT ?",
            [since, before, *values, limit],
        )
        return make_page_back(map(_entry, rows), since, first, limit, max_bytes)

    @property
    def no_progress(self) -> str:
        """The end of an SQL condition, which leaves out ``progress`` unless it is wanted."""
        return "" if self.progress else " AND type <> 'progress'"

    def nothing(self, first: int | None) -> ReadBack:
        """See ``Asked``."""
        return ReadBack([], self.before, self.before if first is None else first)


def condition_of(**columns: str | None) -> tuple[str, list[str]]:
    """The end of an SQL condition on those columns that must have a value, and the values."""
    wanted = {column: value for column, value in columns.items() if value is not None}
    return "".join(f" AND {column} = ?" for column in wanted), list(wanted.values())


def make_page(entries: Iterator[EncodedEntry], upto: int, first: int, limit: int, max_bytes: int) -> Read:
    """The page of entries that were looked for up to an offset, with that limit."""
    page, is_all = _within(entries, limit, max_bytes)
    return Read(page, upto if is_all else page[-1].offset, first)


def make_page_back(entries: Iterator[EncodedEntry], since: int, first: int, limit: int, max_bytes: int) -> ReadBack:
    """The page of entries that were looked for down to an offset, with that limit; they come newest first."""
    page, is_all = _within(entries, limit, max_bytes)
    return ReadBack(page[::-1], since if is_all else page[-1].offset, first)


_SELECT = "SELECT offset, call_id, caller, type, body FROM events"


def _entry(row: tuple[int, str, str, str, bytes]) -> EncodedEntry:
    return EncodedEntry(*row)


def _within(entries: Iterator[EncodedEntry], limit: int, max_bytes: int) -> tuple[list[EncodedEntry], bool]:
    """The entries that are within the limits, at least the first, and whether there are no more.

    They are taken one by one, so that nothing beyond the limits is read from the disk.
    """
    page: list[EncodedEntry] = []
    size = 0
    for entry in entries:
        size += len(entry.body)
        if page and size > max_bytes:
            return page, False
        page.append(entry)
    return page, len(page) < limit
