"""The events of one call that may have to be sent again."""

from __future__ import annotations

import itertools
from collections import deque


class EventHistory:
    """Encoded events 1, 2, 3 … The first is kept for good, and the newest within bounds until they are forgotten."""

    def __init__(self, *, max_events: int, max_bytes: int) -> None:
        self._max_events, self._max_bytes = max_events, max_bytes
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._opening = b""
        self.last_seq = 0

    @property
    def first_kept(self) -> int:
        """The oldest seq, the first aside, that is kept; ``last_seq + 1`` if none is."""
        return self.last_seq - len(self._kept) + 1

    @property
    def newest(self) -> bytes:
        """The newest event that is kept."""
        return self._kept[-1] if self._kept else self._opening

    def append(self, encoded: bytes) -> None:
        """Take the next event; what is beyond the bounds is dropped, oldest first."""
        self.last_seq += 1
        self._opening = self._opening or encoded
        self._kept.append(encoded)
        self._size += len(encoded)
        while len(self._kept) > self._max_events or (self._size > self._max_bytes and len(self._kept) > 1):
            self._drop()

    def forget(self, to_seq: int) -> None:
        """Let go of events up to ``to_seq``."""
        while self._kept and self.first_kept <= to_seq:
            self._drop()

    def range(self, from_seq: int, to_seq: int, limit: int) -> tuple[list[bytes], tuple[int, int] | None]:
        """Return up to ``limit`` events of a range, in order, and the part of the range that is not kept any more."""
        first = self.first_kept
        found = [self._opening] if from_seq <= 1 < first and to_seq >= 1 else []
        start = max(from_seq, first)
        found += itertools.islice(self._kept, start - first, max(start, min(to_seq + 1, start + limit)) - first)
        gone = max(from_seq, 2), min(to_seq, first - 1)
        return found, gone if gone[0] <= gone[1] else None

    def _drop(self) -> None:
        self._size -= len(self._kept.popleft())
