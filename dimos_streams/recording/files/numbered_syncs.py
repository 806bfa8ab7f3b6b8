"""The places of the sync words in a file, by the numbers of the events that they may begin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.recording.format import HEADER, LONGEST_CHANNEL, SYNC_BYTES

_REACH = HEADER.size + LONGEST_CHANNEL + MAX_MESSAGE
"""The length of the longest event in which another is searched for."""
_CHUNK = 1 << 20
_HEAD = 12
"""The bytes of a sync word and a number."""


class NumberedSyncs:
    """Finds sync words by their numbers. A part of the file that is twice as long as any event is looked through at a
    time, and that is remembered: searches in one event after another, whose headers lie close together, take a time
    that grows as the file does."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        """``read`` takes an offset and a length, and returns these bytes of the file; fewer only at its end."""
        self._read = read
        self._start = self._stop = 0
        self._numbers: NDArray[np.uint64] = np.empty(0, np.uint64)
        """The numbers behind the sync words from ``_start`` on and before ``_stop``, in ascending order."""
        self._positions: NDArray[np.int64] = np.empty(0, np.int64)
        """The place of each of them; those of one number in ascending order."""

    def find(self, number: int, start: int, stop: int) -> int | None:
        """Return the first position from ``start`` on and before ``stop`` of a sync word that this number, of 64 bits
        without a sign, follows; None if there is none."""
        while start < stop:
            if start < self._start or min(stop, start + _REACH) > self._stop:
                self._look_through(start)
            first, last = (np.searchsorted(self._numbers, np.uint64(number), side) for side in ("left", "right"))
            positions = self._positions[first:last]
            following = np.searchsorted(positions, start)
            if following < len(positions):
                return found if (found := int(positions[following])) < stop else None
            start = self._stop
        return None

    def _look_through(self, start: int) -> None:
        self._start, self._stop = start, start + 2 * _REACH
        parts = [self._syncs(at, min(_CHUNK, self._stop - at)) for at in range(start, self._stop, _CHUNK)]
        numbers, positions = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(numbers, kind="stable")
        self._numbers, self._positions = numbers[order], positions[order]

    def _syncs(self, at: int, length: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The numbers and positions of the sync words that begin in ``length`` bytes from ``at`` on."""
        data = np.frombuffer(self._read(at, length + _HEAD - 1), np.uint8)
        begins = np.arange(max(0, len(data) - _HEAD + 1))
        for offset, byte in enumerate(SYNC_BYTES):
            begins = begins[data[begins + offset] == byte]
        numbers = np.zeros(len(begins), np.uint64)
        for offset in range(len(SYNC_BYTES), _HEAD):
            numbers = numbers << np.uint64(8) | data[begins + offset]
        return numbers, begins + at
