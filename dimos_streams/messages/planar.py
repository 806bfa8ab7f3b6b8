"""The pose of a robot on the floor, from a pose in space."""

from __future__ import annotations

import math

from dimos_streams.messages.geometry_msgs import Pose

FARTHEST = 1e9
"""The largest distance in metres: a place that is said to be farther away is not there."""


def planar_pose(pose: Pose) -> tuple[float, float, float] | None:
    """x and y in metres, and the heading: radians from the x axis, counter-clockwise.

    None if the numbers can't be a robot's: not finite, or absurdly large. Never raises.
    """
    at, q = pose.position, pose.orientation
    if not (math.hypot(at.x, at.y) <= FARTHEST and math.hypot(q.x, q.y, q.z, q.w) <= FARTHEST):
        return None
    return at.x, at.y, math.atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z))
