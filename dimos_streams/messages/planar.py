"""The pose of a robot on the floor, from a pose in space."""

from __future__ import annotations

import math
from typing import NamedTuple

from dimos_streams.messages.geometry_msgs import Pose

FARTHEST = 1e9
"""The largest distance in metres: a place that is said to be farther away is not there."""


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
    """Return the pose on the floor, or None if the numbers can't be a robot's: not finite, or absurdly large. Never
    raises."""
    at, q = pose.position, pose.orientation
    if not (math.hypot(at.x, at.y) <= FARTHEST and math.hypot(q.x, q.y, q.z, q.w) <= FARTHEST):
        return None
    yaw = math.atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z))
    return PlanarPose(at.x, at.y, yaw)
