"""A steady rate at which a skill reports its progress, whatever the pace of its loop."""

from __future__ import annotations


class Cadence:
    """Periods, counted from a beginning.

    Counted from the last report, a period would be as many turns of the loop as happen to fit: five or six of them by
    a millisecond of jitter, so that a replay of a live run would report more often, or less, than the run did.
    """

    def __init__(self, period_s: float, begin: float) -> None:
        """``begin`` is in seconds on the monotonic clock; the first period begins there."""
        self._period_s = period_s
        self._due = begin

    def is_due(self, now: float) -> bool:
        """Return whether a period has begun since this last returned True; those that were missed count as one."""
        if now < self._due:
            return False
        self._due += self._period_s * ((now - self._due) // self._period_s + 1)
        return True
