"""A limit on how much of something may happen in a while: what comes from outside must not cost more than that."""

from __future__ import annotations

from dimos_streams import clock


class Allowance:
    """An amount that grows at a rate up to a limit, and is used up by what happens. Time is the loop's."""

    def __init__(self, rate: float, limit: float) -> None:
        """``rate`` is per second; all of ``limit`` is there at the beginning."""
        self._rate, self._limit = rate, limit
        self._left = limit
        self._era, self._at = -1, float("-inf")

    def take(self, amount: float = 1.0) -> bool:
        """Use some of it, or nothing and return False if there is not enough left. At most ``limit`` can be asked."""
        if not self.has(amount):
            return False
        self._left -= min(amount, self._limit)
        return True

    def has(self, amount: float = 1.0) -> bool:
        """Return whether that amount could be used now."""
        era, now = clock.era(), clock.monotonic()
        if era != self._era or not self._at <= now:  # at the first time, or under another loop's clock
            self._era, self._left, self._at = era, self._limit, now
        self._left = min(self._limit, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left >= min(amount, self._limit)
