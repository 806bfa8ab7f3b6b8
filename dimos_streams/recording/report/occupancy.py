"""The cells in which something stands, as successive scans have shown them: what has gone is forgotten."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from dimos_streams.messages.scan import nearest_measured
from dimos_streams.messages.sensor_msgs import LaserScan

CELL_M: Final = 0.1
"""The side of a cell, in metres."""
Cell = tuple[int, int]
_HIT, _MISS, _MOST = 20, -5, 100
"""The points for a hit and for a ray that looks past, and their bound, as in the live map: a hit counts more, and
nothing is sure for ever."""
_FREE_M = 5.0
"""The distance in metres that counts as free along a ray that hit nothing."""
_SEEN_M = 40.0
"""The distance in metres from which on hits are not entered."""
_LEAST_TURN = 1e-5


class Occupancy:
    """Cells with their certainty that something stands there: more with each scan that hits it, less with each that
    looks through it to what is behind."""

    def __init__(self) -> None:
        self._sure: dict[Cell, int] = {}

    def __len__(self) -> int:
        return len(self._sure)

    @property
    def cells(self) -> Mapping[Cell, int]:
        """The certainty of each cell, 1 to 100. Cells that were looked through too often are dropped."""
        return self._sure

    def add(self, x: float, y: float, yaw: float, scan: LaserScan, *, room: int) -> None:
        """Take a scan that is not blind, made from a place in metres and radians; ``room`` is the number of new cells
        for which there is space."""
        ranges = np.asarray(scan.ranges, dtype=np.float64)
        angles = yaw + scan.angle_min + np.arange(len(ranges)) * scan.angle_increment
        is_hit = (ranges >= nearest_measured(scan)) & (ranges < min(scan.range_max, _SEEN_M))
        far = ranges[is_hit]
        columns = np.floor((x + far * np.cos(angles[is_hit])) / CELL_M).astype(int)
        rows = np.floor((y + far * np.sin(angles[is_hit])) / CELL_M).astype(int)
        hit = sorted(set(zip(columns.tolist(), rows.tolist(), strict=True)))
        self._clear(x, y, yaw, scan, ranges, frozenset(hit))
        for cell in hit:
            if cell in self._sure or room > 0:
                room -= cell not in self._sure
                self._sure[cell] = min(_MOST, self._sure.get(cell, 0) + _HIT)

    def _clear(
        self, x: float, y: float, yaw: float, scan: LaserScan, ranges: np.ndarray[Any, Any], hit: frozenset[Cell]
    ) -> None:
        """Lower the certainty of cells that were not hit and that rays passed on their way."""
        known = [cell for cell in self._sure if cell not in hit]
        turn = abs(scan.angle_increment)
        if not known or turn < _LEAST_TURN:
            return
        free = np.where(ranges >= scan.range_max, min(_FREE_M, scan.range_max), ranges)
        free = np.where(free >= scan.range_min, free, 0.0)  # what is no number was not measured either
        at = (np.array(known, dtype=np.float64) + 0.5) * CELL_M - (x, y)
        away = np.hypot(at[:, 0], at[:, 1])
        beyond = away + CELL_M
        bearing = np.arctan2(at[:, 1], at[:, 0]) - yaw - scan.angle_min
        wide = np.arctan2(CELL_M, 2 * away)
        past = np.ones(len(known), dtype=bool)
        for side in (-1, 0, 1):  # else rays that graze a wall would wear it away
            ray = np.rint(np.mod(math.copysign(1.0, scan.angle_increment) * (bearing + side * wide), math.tau) / turn)
            index = ray.astype(int) % max(1, round(math.tau / turn))
            is_one = index < len(free)
            past &= is_one & (free[np.where(is_one, index, 0)] > beyond)
        for place in np.flatnonzero(past):
            cell = known[place]
            self._sure[cell] += _MISS
            if self._sure[cell] <= 0:
                del self._sure[cell]


def standing(floors: Mapping[str, Occupancy]) -> list[Cell]:
    """Return the cells in which something stands, as any of the robots knows it, in order: what was hit once only has
    gone on since, unless nothing was hit more often."""
    sure = [(cell, how) for floor in floors.values() for cell, how in floor.cells.items()]
    least = _HIT if any(how > _HIT for _, how in sure) else 0
    return sorted({cell for cell, how in sure if how > least})
