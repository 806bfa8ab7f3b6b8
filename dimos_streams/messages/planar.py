"""The pose of a robot on the floor, from a pose in space."""

from __future__ import annotations

import math
from typing import NamedTuple

from dimos_streams.messages.geometry_msgs import Pose

FARTHEST = 1e9
"""The largest distance in metres: a place that is said to be farther away is not there."""

_SHORTEST = 1e-3
"""The least length of a quaternion that has a direction: shorter ones are what is left of zeros."""


class PlanarPose(NamedTuple):
    """The pose of a robot's base in a frame that stands still (odom, or a simulator's world)."""

    x: float = 0.0
    """Metres."""
    y: float = 0.0
    """Metres."""
    yaw: float = 0.0
    """The heading: radians from the x axis, counter-clockwise."""

    def apply(self, point: tuple[float, float, float]) -> tuple[float, float, float]:
        """Return a point of the base's frame as it is in the still frame. Heights are the same in both."""
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        x, y, z = point
        return self.x + c * x - s * y, self.y + s * x + c * y, z


def planar_pose(pose: Pose) -> PlanarPose | None:
    """Return the pose on the floor, or None if the numbers can't be a robot's: not finite, absurdly large, or an
    orientation that is all zero. Never raises."""
    at, q = pose.position, pose.orientation
    rotation = unit_quaternion(q.x, q.y, q.z, q.w)
    if rotation is None or not math.hypot(at.x, at.y) <= FARTHEST:
        return None
    x, y, z, w = rotation
    return PlanarPose(at.x, at.y, math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


def unit_quaternion(x: float, y: float, z: float, w: float) -> tuple[float, float, float, float] | None:
    """Return the quaternion of length 1 in the same direction, or None if it has none: it is zero or nearly so,
    absurdly large, or not finite. Never raises."""
    norm = math.hypot(x, y, z, w)
    return (x / norm, y / norm, z / norm, w / norm) if _SHORTEST <= norm <= FARTHEST else None
