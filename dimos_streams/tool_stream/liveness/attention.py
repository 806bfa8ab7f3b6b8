"""A watch for this process itself being held up: what it has not heard in that time says nothing about others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dimos_streams import clock

_LOOK_S = 0.25
_BREAK_S = 1.0
"""The time between two looks, in seconds, above which there was a break; a shorter one is not excused."""


class Attention:
    """A watch that looks at the clock several times a second. Use from one loop only."""

    def __init__(self, excuse: Callable[[float], None]) -> None:
        """``excuse`` is called after each break, before anybody is judged by the time, with its length in seconds."""
        self._excuse = excuse
        self._looked: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.since = float("-inf")
        """The time on the loop's clock since which this process has listened without a break."""

    def start(self) -> None:
        """Begin to look."""
        self._looked = self.since = clock.monotonic()
        self._look()

    def stop(self) -> None:
        """Look no more. Stopping twice is fine."""
        self._looked = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def now(self) -> float:
        """Return the time by which to judge others; a break before it has been excused."""
        now = clock.monotonic()
        if self._looked is not None and now - self._looked > _BREAK_S:
            self._excuse(now - self._looked - _LOOK_S)
            self._looked = self.since = now
        return now

    def _look(self) -> None:
        self._looked = self.now()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)
