"""The sizes of a hub's events, by which the oldest ones go when all of them take too much."""

from __future__ import annotations

from collections.abc import Iterator

from dimos_streams.hub.storage.engines.engine import Engine
from dimos_streams.hub.storage.rows import ROW_BYTES, KeptRange

_CHUNK = 1000
"""Number of events whose sizes are added up at once."""
_AT_MOST = 4
"""The room that dropping events gives, at most, by their own bytes: the records of their calls go with them, which
may have each text twice."""
SHARES = 16
"""The bound is this many shares: one may come before it is looked at again, one while events are dropped, and one is
dropped at once."""


class EventSizes:
    """The sizes of stored events. Each is looked at once, if at all: what a database uses tells most of the time that
    nothing has to go. Use from one thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._body_bytes = engine.text_bytes.format("body")
        self._sums: dict[int, int] = {}
        """The bytes of each whole chunk, by its first number."""

    def to_keep(self, kept: KeptRange, max_bytes: int) -> KeptRange | None:
        """The part of a range that is to be kept so that it takes less, where it takes more than so many bytes; None
        for all of it. Ask again once the rest is dropped: how much that gives is known then."""
        for each in [each for each in self._sums if each < kept.first]:
            del self._sums[each]
        share = max_bytes // SHARES
        used, most = self._engine.used(), max_bytes - 2 * share
        if used > most and not self._engine.reuses_room:
            used = self._total(kept)
        if used <= most or kept.first > kept.last:
            return None
        return KeptRange(self._first_without(kept, (used - most + share) // _AT_MOST), kept.last)

    def _total(self, kept: KeptRange) -> int:
        with self._engine.reading() as db:
            size = self._engine.text_bytes.format("record")
            ((calls, records),) = db.rows(f"SELECT count(*), coalesce(sum({size}), 0) FROM calls")
        of_calls = int(calls) * ROW_BYTES + int(records)
        return of_calls + sum(self._sum(first, last) for first, last in _chunks(kept))

    def _first_without(self, kept: KeptRange, excess: int) -> int:
        """The first number that is kept if the oldest events go that take so many bytes."""
        for first, last in _chunks(kept):
            taken = self._sum(first, last)
            if taken >= excess:
                return self._behind(first, last, excess)
            excess -= taken
        return kept.last + 1

    def _sum(self, first: int, last: int) -> int:
        if (known := self._sums.get(first)) is not None:
            return known
        with self._engine.reading() as db:
            sizes = f"SELECT count(*), coalesce(sum({self._body_bytes}), 0) FROM events"
            ((events, size),) = db.rows(f"{sizes} WHERE seq >= ? AND seq <= ?", first, last)
        taken = int(events) * ROW_BYTES + int(size)
        if last - first == _CHUNK - 1:
            self._sums[first] = taken
        return taken

    def _behind(self, first: int, last: int, excess: int) -> int:
        """The number behind the events from one number on that take so many bytes."""
        with self._engine.reading() as db:
            sizes = f"SELECT seq, {self._body_bytes} FROM events"
            rows = db.rows(f"{sizes} WHERE seq >= ? AND seq <= ? ORDER BY seq", first, last)
        for seq, size in rows:
            excess -= ROW_BYTES + size
            if excess <= 0:
                return int(seq) + 1
        return last + 1


def _chunks(kept: KeptRange) -> Iterator[tuple[int, int]]:
    """The first and the last numbers of the chunks of a range. Each but those at its ends is whole."""
    first = kept.first
    while first <= kept.last:
        last = min(first - first % _CHUNK + _CHUNK - 1, kept.last)
        yield first, last
        first = last + 1
