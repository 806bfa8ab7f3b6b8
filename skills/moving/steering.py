"""Finding a way around what a lidar sees near the robot."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dimos_streams.messages.scan import free_distance, hits, why_blind
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.streams import In

NEAR = 2.0
SCAN_AGE_S = 0.5
STEPS = tuple(math.radians(degrees) for degrees in (12, 24, 36, 48, 60, 75, 90))


class Surroundings:
    """The points of one scan that are near enough to matter."""

    def __init__(self, points: Sequence[complex], half_width: float) -> None:
        """``points`` are in base_link, metres; ``half_width`` is half of what the robot needs, see ``HullConfig``."""
        self._points, self._half_width = points, half_width

    def free_distance(self, direction: float) -> float:
        """Return the metres that the robot can go in a direction of base_link; infinite if nothing near is there."""
        return free_distance(self._points, direction, self._half_width)


def surroundings_of(scan: In[LaserScan], half_width: float) -> Surroundings:
    """The surroundings in the newest scan (of base_link); nothing if there is none, or only an old one."""
    message, age = scan.latest, scan.age()
    if message is None or age is None or age > SCAN_AGE_S or why_blind(message):
        return Surroundings((), half_width)
    return Surroundings(hits(message, within=NEAR), half_width)


class Detour:
    """Picks free directions. Keeps to the side on which it began to pass until the way is free, lest it waver."""

    def __init__(self) -> None:
        self._side = 1.0
        self._passing = False

    def direction(self, around: Surroundings, wanted: float, look_ahead: float) -> float:
        """The direction nearest to ``wanted`` that is free for ``look_ahead`` metres, or ``wanted`` if none is."""
        if around.free_distance(wanted) >= look_ahead:
            self._passing = False
            return wanted
        sides = (self._side, -self._side)
        turns = [side * step for step in STEPS for side in sides]
        if self._passing:
            turns = [side * step for side in sides for step in STEPS]
        for turn in turns:
            if around.free_distance(wanted + turn) >= look_ahead:
                self._side, self._passing = math.copysign(1.0, turn), True
                return wanted + turn
        return wanted
