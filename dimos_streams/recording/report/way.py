"""The way of a robot, kept within a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

_STEP_M = 0.02
_JUMP_M_S = 20.0
"""The fastest that anything drives, m/s: a pose that is farther away was set, not driven to."""
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Stand:
    """A robot's pose, and its time (µs)."""

    utime: int
    x: float
    y: float
    yaw: float
    gone_m: float = 0.0
    """Metres that the robot had gone since the beginning of the recording."""


class Way:
    """Poses in the order of time; those that hardly differ from the one before are left out."""

    def __init__(self) -> None:
        self.stands: list[Stand] = []
        self.newest: Stand | None = None
        self.distance_m = 0.0
        self.jumps = 0
        """The number of times that it was somewhere else all at once."""
        self._counted: Stand | None = None
        self._step_m = _STEP_M

    def add(self, stand: Stand) -> None:
        """Add the newest pose."""
        self._count(stand)
        stand = self.newest = replace(stand, gone_m=self.distance_m)
        if self.stands and math.dist((stand.x, stand.y), (self.stands[-1].x, self.stands[-1].y)) < self._step_m:
            return
        self.stands.append(stand)
        if len(self.stands) > _MOST:
            self.stands = self.stands[::2]
            self._step_m *= 2

    def at(self, utime: int) -> Stand | None:
        """Return the pose at a time, or None before the first pose."""
        low, high = 0, len(self.stands)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.stands[middle].utime <= utime else (low, middle)
        return self.stands[low - 1] if low else None

    def between(self, begin: int, end: int) -> float:
        """Return the metres that it went from one time to another."""
        first, last = self.at(begin) or self.stands[0], self.at(end)
        return 0.0 if last is None else max(0.0, last.gone_m - first.gone_m)

    def _count(self, stand: Stand) -> None:
        before = self._counted
        if before is None:
            self._counted = stand
            return
        moved = math.dist((stand.x, stand.y), (before.x, before.y))
        if moved < _STEP_M:
            return
        passed_s = max(0.05, (stand.utime - before.utime) / 1e6)
        if moved > _JUMP_M_S * passed_s:
            self.jumps += 1
        else:
            self.distance_m += moved
        self._counted = stand
