"""The time of a source by the stamps of its messages, whatever its clock shows and whenever that is set.

Clocks of several machines differ, by days where nobody sets them. So the stamps of a source are compared with each
other, and with the time that has passed here meanwhile; never with the clock of this machine. Free of I/O; times of
the loop are handed in, in seconds. Stamps and instants are whole µs.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import Generic, TypeVar

from dimos_streams.common.limited_log import LimitedLog

T = TypeVar("T")

SLACK_US = 1_000_000
"""The time by which a message may have been faster in transit than the one before it, besides what lay between: a
source that works on one picture after another can be no longer late than that."""
CONFIRMING = 3
"""The number of messages in a row that must agree about another time to show that the source's clock was set."""
LONGEST_AGE_US = 30_000_000
"""A measurement that seems to be older than this has another clock."""

_KEPT_US = 10_000_000
_APART_US = 20_000
_MOST = _KEPT_US // _APART_US + 2
_INSTANT = itemgetter(0)
_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class _Mark:
    """A stamp and when it arrived."""

    stamp: int
    arrived: float

    def at(self, now: float) -> int:
        """The source's clock at another time."""
        return self.stamp + _us(now - self.arrived)

    def may_precede(self, later: _Mark) -> bool:
        """Return whether one clock may have given both stamps."""
        passed = _us(later.arrived - self.arrived)
        return 0 < later.stamp - self.stamp <= SLACK_US + 2 * passed


class Timeline:
    """Follows one source. Its instants are its stamps until its clock is set; then they go on as if it never was."""

    def __init__(self, name: str) -> None:
        """``name`` is the source's, for the log."""
        self.ignored = 0
        """The number of impossible stamps, and of those before the ones that showed that the clock was set."""
        self._name = name
        self._newest: _Mark | None = None
        self._shift = 0
        self._doubted: list[_Mark] = []

    def take(self, stamp: int, now: float) -> int | None:
        """Return the instant of a message that has just come, or None for one that is to be ignored.

        That is one that repeats the newest stamp, as a frozen camera does, or whose stamp is impossible.
        """
        if self.repeats(stamp):
            return None
        mark = _Mark(stamp, now)
        if self._newest is not None and not self._newest.may_precede(mark):
            if not self._is_confirmed(mark):
                self._ignore(mark, self._newest)
                return None
            self._shift += self._newest.at(now) - stamp
            self._report_jump((stamp - self._newest.at(now)) / 1e6)
        self._newest = mark
        self._doubted.clear()
        return stamp + self._shift

    def repeats(self, stamp: int) -> bool:
        """Return whether a stamp is the newest one that was taken."""
        return self._newest is not None and self._newest.stamp == stamp

    def now(self, now: float) -> int | None:
        """Return the instant at a time of the loop, as far as the newest message shows, or None before the first."""
        return None if self._newest is None else self._newest.at(now) + self._shift

    def age_us(self, stamp: int, now: float) -> int | None:
        """Return the µs since another source gave a stamp, by this source's clock, or None if the two clocks
        differ."""
        if self._newest is None:
            return None
        age = self._newest.at(now) - stamp
        return max(0, age) if -SLACK_US <= age <= LONGEST_AGE_US else None

    def _is_confirmed(self, mark: _Mark) -> bool:
        if self._doubted and not self._doubted[-1].may_precede(mark):
            self._doubted.clear()
        self._doubted.append(mark)
        return len(self._doubted) >= CONFIRMING

    def _report_jump(self, by_s: float) -> None:
        """Log that the source's time goes on elsewhere; what is heard here does not tell which of two reasons it
        has."""
        text = "%s: from now on its stamps are taken as %.1f s off: its clock was set, or messages came late"
        _log.warning(text, self._name, by_s)

    def _ignore(self, mark: _Mark, newest: _Mark) -> None:
        self.ignored += 1
        off_s = (mark.stamp - newest.at(mark.arrived)) / 1e6
        _log.warning("%s: a stamp is off by %.1f s and ignored, %d so far", self._name, off_s, self.ignored)


class History(Generic[T]):
    """A source's values of the last 10 s, so that what another one measured a moment ago can be placed. Of a fast
    source one in 20 ms is kept, besides the newest."""

    def __init__(self, name: str, *, other_ahead: Callable[[], int | None] = lambda: 0) -> None:
        """``other_ahead`` tells how far the clock of the other source is ahead of this one's, µs; None where that is
        not known."""
        self._other_ahead = other_ahead
        self._timeline = Timeline(name)
        self._values: deque[tuple[int, T]] = deque(maxlen=_MOST)

    def add(self, stamp: int, now: float, value: T) -> None:
        """Take what has just come. Of values with one stamp, as from a source that gives none, the newest is kept."""
        instant = self._timeline.take(stamp, now)
        if instant is not None:
            self._keep(instant, value)
        elif self._timeline.repeats(stamp) and self._values:
            self._values[-1] = (self._values[-1][0], value)

    @property
    def latest(self) -> T | None:
        """The newest value, or None while there is none."""
        return self._values[-1][1] if self._values else None

    def at(self, stamp: int, arrived: float) -> T | None:
        """Return the value nearest in time to what another source stamped; where their clocks differ, to its arrival.
        None if there is no value, and for what is older than the oldest one by more than these are apart."""
        at_arrival = self._timeline.now(arrived)
        if at_arrival is None:
            return None
        age = self.age_us(stamp, arrived)
        instant = at_arrival - (age or 0)
        before_all_us = self._values[0][0] - instant
        if before_all_us > 0 and before_all_us > self._usual_step_us():
            return None
        return self._nearest(instant)

    def age_us(self, stamp: int, now: float) -> int | None:
        """Return the µs since the other source gave a stamp, by this one's clock, or None if the clocks can't be
        compared."""
        ahead = self._other_ahead()
        return None if ahead is None else self._timeline.age_us(stamp - ahead, now)

    def _keep(self, instant: int, value: T) -> None:
        values = self._values
        if len(values) > 1 and values[-1][0] - values[-2][0] < _APART_US:
            values.pop()
        values.append((instant, value))
        while values[0][0] < instant - _KEPT_US:
            values.popleft()

    def _nearest(self, instant: int) -> T:
        """Return the value nearest to an instant; of two that are as near, the older one."""
        values = self._values
        later = bisect_left(values, instant, key=_INSTANT)
        if later == len(values):
            return values[-1][1]
        earlier = max(0, later - 1)
        return values[earlier if instant - values[earlier][0] <= values[later][0] - instant else later][1]

    def _usual_step_us(self) -> float:
        """The time between two values that are kept."""
        steps = [later - earlier for (earlier, _), (later, _) in pairwise(self._values)]
        return max(_APART_US, median(steps)) if steps else _APART_US


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
