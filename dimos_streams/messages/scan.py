"""The reasons why a scan of a lidar says nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dimos_streams.messages.sensor_msgs import LaserScan

_MAX_ANGLE = 2 * math.tau
_NARROWEST = math.radians(1.0)
"""The angle between the first and the last ray below which they are as good as one."""


def why_blind(scan: LaserScan) -> str:
    """Return why a scan says nothing of what is around the robot, in words after the topic's name; empty if it does.

    A ray that hits nothing, infinite or beyond ``range_max``, says that there is nothing. One that is NaN, or nearer
    than ``range_min``, was not measured. Never raises.
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
    if not _any_measured(scan.ranges, scan.range_min):
        return f"has no rays that were measured: all are NaN or below range_min, {scan.range_min:g} m"
    return ""


def _any_measured(ranges: Iterable[float], nearest: float) -> bool:
    return any(distance >= nearest and distance >= 0.0 for distance in ranges)
