"""The time within which an operator has to decide: it runs, or stands still while nobody watches."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from dimos_streams import clock


class DecisionTime:
    """The time that is left for one decision."""

    def __init__(self, seconds: float | None = None) -> None:
        """``seconds`` is None for a decision that has all the time in the world."""
        self.expires_utime: int | None = None
        """The end by the clock, for people; None while it does not run."""
        self._left_s = seconds
        self._ends_at = math.inf
        """The end on ``clock.steady``: a timer stands still while the machine sleeps."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_over(self) -> bool:
        """True if nobody can decide any more."""
        return clock.steady() > self._ends_at

    def run(self, on_end: Callable[[], object]) -> None:
        """Let it run; ``on_end`` is called when it is over."""
        if self._left_s is None:
            return
        self.expires_utime = clock.utime() + round(self._left_s * 1e6)
        self._ends_at = clock.steady() + self._left_s
        self._timer = asyncio.get_running_loop().call_later(self._left_s, on_end)

    def stand_still(self) -> None:
        """Keep what is left until it runs again."""
        if self._timer is not None:
            self._left_s = max(0.0, self._ends_at - clock.steady())
            self._timer.cancel()
            self._timer, self.expires_utime, self._ends_at = None, None, math.inf

    def end(self) -> None:
        """Note that the decision is known: nothing is called any more."""
        if self._timer is not None:
            self._timer.cancel()
