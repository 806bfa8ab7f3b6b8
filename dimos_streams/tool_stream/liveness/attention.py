"""The detection of times in which this process itself was held up. Others may have spoken then, so their silence does
not count; and the requests that it reads afterwards may be outdated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dimos_streams import clock

_LOOK_S = 0.25
_BREAK_S = 1.0
"""The time between two looks, in seconds, above which there was a break; a shorter one is not excused."""
STILL_S = 0.5
"""The time without a look, in seconds, above which this process, or its machine, has stood still."""
OUTDATED_S = 1.5
"""The time, in seconds, for which it may stand still before requests that came meanwhile count as outdated: nobody
gives up a request sooner."""
_CATCHES_UP, CATCHES_UP_S = 1 / 4, 0.5
"""The time that it needs to read what came while it stood still, as a part of that time, and the maximum, in
seconds."""


class Attention:
    """A watch that looks at the clock several times a second. Use from one loop only."""

    def __init__(self, excuse: Callable[[float], None] = lambda break_s: None) -> None:
        """``excuse`` is called after each break, before anybody is judged by the time, with its length in seconds."""
        self._excuse = excuse
        self._looked: float | None = None
        self._steady = 0.0
        """Time of the last use on a clock that goes on while the machine sleeps."""
        self._caught_up_at = self._outdated_until = float("-inf")
        """Times on the loop's clock at which all has been read that came while it stood still, and the same for what
        may have been given up."""
        self._timer: asyncio.TimerHandle | None = None
        self.since = float("-inf")
        """The time on the loop's clock since which this process has listened without a break."""

    def start(self) -> None:
        """Begin to look."""
        self._looked = self.since = clock.monotonic()
        self._steady = clock.steady()
        self._look()

    def stop(self) -> None:
        """Look no more. Stopping twice is fine."""
        self._looked = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def now(self) -> float:
        """Return the time by which to judge others; a break before it has been excused."""
        now, before, self._steady = clock.monotonic(), self._steady, clock.steady()
        if self._looked is not None and (still_s := self._steady - before) > STILL_S:
            self._caught_up_at = now + min(still_s * _CATCHES_UP, CATCHES_UP_S)
            if still_s > OUTDATED_S:
                self._outdated_until = self._caught_up_at
        if self._looked is not None and now - self._looked > _BREAK_S:
            self._excuse(now - self._looked - _LOOK_S)
            self._looked = self.since = now
        return now

    @property
    def catching_up_s(self) -> float:
        """The time, in seconds, until all has been read that came while this process stood still."""
        now = self.now()
        return max(0.0, self._caught_up_at - now)

    @property
    def outdated_s(self) -> float:
        """The time, in seconds, for which this process may still read what was sent so long ago that it has been
        given up since; 0 if it reads nothing like that."""
        now = self.now()
        return max(0.0, self._outdated_until - now)

    def _look(self) -> None:
        self._looked = self.now()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)
