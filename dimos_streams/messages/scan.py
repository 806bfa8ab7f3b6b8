"""The content of a lidar's scan: which rays were measured, what they hit, how far a robot may go, or why it is blind.

Points and directions are of the scan's frame; a point is a complex number, x + yi, in metres.
"""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Iterable, Sequence

from dimos_streams.messages.sensor_msgs import LaserScan

_MAX_ANGLE = 2 * math.tau
_NARROWEST = math.radians(1.0)
"""The angle between the first and the last ray below which they are as good as one."""
_NEAREST = 0.001
"""The least distance in metres that a lidar measures: with 0 it says that it got no echo, whatever its range_min."""
_BESIDE = math.radians(20)
"""The largest angle, in radians, from a ray to a direction into which it still looks: closer rays would show nothing
more that is as wide as a chair."""


def why_blind(scan: LaserScan) -> str:
    """Return why a scan says nothing of what is around the robot, in words after the topic's name; empty if it does.

    A ray that hits nothing, infinite or beyond ``range_max``, says that there is nothing. One of ``-inf`` has hit
    something too near to measure, which counts as a hit at ``range_min``. One that is NaN, 0, or otherwise below
    ``range_min`` was not measured: with such values lidars mask the robot's own body. Never raises.
    """
    if not (abs(scan.angle_min) <= _MAX_ANGLE and abs(scan.angle_increment) <= _MAX_ANGLE):
        return f"has angles that are none (from {scan.angle_min:g}, every {scan.angle_increment:g} rad)"
    if not len(scan.ranges):
        return "has no rays: `ranges` is empty"
    if len(scan.ranges) == 1:
        return "looks one way only: it has one ray, and the robot is wider than that"
    if abs(math.remainder(scan.angle_increment, math.tau)) * (len(scan.ranges) - 1) < _NARROWEST:
        return f"looks one way only: its {len(scan.ranges)} rays are {scan.angle_increment:g} rad apart"
    if not scan.range_max > max(0.0, scan.range_min):
        return f"can hit nothing: its range_min is {scan.range_min:g} m, its range_max {scan.range_max:g} m"
    if not _any_measured(scan.ranges, nearest_measured(scan)):
        return f"has no rays that were measured: all are NaN, 0 or below range_min, {scan.range_min:g} m"
    return ""


def hits(scan: LaserScan, within: float = math.inf) -> list[complex]:
    """Return the points that a scan that is not blind has hit within that distance in metres."""
    nearest, farthest = nearest_measured(scan), min(scan.range_max, within)
    rays = _rays(len(scan.ranges), scan.angle_min, scan.angle_increment)
    return [
        (distance if distance >= nearest else nearest) * ray
        for distance, ray in zip(scan.ranges, rays, strict=True)
        if nearest <= distance <= farthest or distance == -math.inf
    ]


def looks(scan: LaserScan, direction: float) -> bool:
    """Return whether a ray of a scan that is not blind was measured in or near a direction, whatever it has hit."""
    for turns in range(-2, 3):
        bearing = direction + turns * math.tau - scan.angle_min
        ends = sorted((bearing + side) / scan.angle_increment for side in (-_BESIDE, _BESIDE))
        first, end = max(0, math.ceil(ends[0])), max(0, math.floor(ends[1]) + 1)
        if _any_measured(scan.ranges[first:end], nearest_measured(scan)):
            return True
    return False


def free_distance(points: Iterable[complex], direction: float, half_width: float) -> float:
    """Return the metres that a disc around the origin may go in a direction until it meets a point, of a radius of
    ``half_width`` in metres; infinite where it meets none."""
    back = cmath.rect(1.0, -direction)
    free = math.inf
    for point in points:
        seen = point * back
        if -half_width < seen.imag < half_width and seen.real > 0.0:
            free = min(free, seen.real - math.sqrt(half_width**2 - seen.imag**2))
    return free


def nearest_measured(scan: LaserScan) -> float:
    """Return the least distance of a scan in metres that counts as measured."""
    return max(scan.range_min, _NEAREST)


def _any_measured(ranges: Iterable[float], nearest: float) -> bool:
    return any(distance >= nearest or distance == -math.inf for distance in ranges)


@functools.lru_cache(maxsize=4)
def _rays(count: int, angle_min: float, increment: float) -> Sequence[complex]:
    """The directions of a scan's rays, which are the same for every scan of a lidar."""
    return [cmath.rect(1.0, angle_min + i * increment) for i in range(count)]
