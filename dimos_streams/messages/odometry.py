"""Odometry from poses, for robots that send where they are but not how fast they move."""

from __future__ import annotations

import math
from typing import ClassVar

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs import PoseStamped, PoseWithCovariance, Twist, TwistWithCovariance, Vector3
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.planar import FARTHEST, planar_pose
from dimos_streams.messages.time import utime_of

_BASE_FRAME = "base_link"
_SHORTEST_US = 20_000
"""The shortest time between two poses, µs, for a velocity: with nearer ones it would be noise, and the old one
stays."""
_LONGEST_US = 1_000_000
"""The longest time between two poses, µs, for a velocity: how the robot moved between farther ones is not known."""


def pose_fault(odometry: Odometry) -> str:
    """Return why its pose can't be a robot's, or nothing if it can; for inputs: ``In(fault=pose_fault)``."""
    pose = odometry.pose.pose
    if planar_pose(pose) is not None:
        return ""
    at, q = pose.position, pose.orientation
    parts = {"position": math.hypot(at.x, at.y), "orientation": math.hypot(q.x, q.y, q.z, q.w)}
    for part, size in parts.items():
        if not size <= FARTHEST:
            return f"its {part} is {'absurdly large' if math.isfinite(size) else 'not a number'}"
    return "its orientation is all zero, or nearly so, which is no quaternion: heading 0 is w = 1"


class OdometryFromPoses:
    """A conversion for inputs: ``odom: In[Odometry] = In(also=OdometryFromPoses)`` takes ``PoseStamped`` as well.

    The velocity, in ``base_link``, is estimated from the way between two poses; it is zero for the first one, after a
    pause of a second, and where poses or stamps can't be a robot's. Its covariances are unknown, all zero.
    """

    takes: ClassVar[type[Message]] = PoseStamped

    def __init__(self) -> None:
        self._last: tuple[int, tuple[float, float, float]] | None = None
        self._velocity = (0.0, 0.0, 0.0)

    def __call__(self, message: PoseStamped, /) -> Odometry:
        self._learn(message)
        vx, vy, wz = self._velocity
        twist = Twist(linear=Vector3(x=vx, y=vy), angular=Vector3(z=wz))
        return Odometry(
            header=message.header,
            child_frame_id=_BASE_FRAME,
            pose=PoseWithCovariance(pose=message.pose),
            twist=TwistWithCovariance(twist=twist),
        )

    def _learn(self, message: PoseStamped) -> None:
        stamp, pose, last = utime_of(message.header), planar_pose(message.pose), self._last
        if pose is None:
            self._last, self._velocity = None, (0.0, 0.0, 0.0)
        elif last is None or not 0 <= stamp - last[0] <= _LONGEST_US:
            self._last, self._velocity = (stamp, pose), (0.0, 0.0, 0.0)
        elif stamp - last[0] >= _SHORTEST_US:
            self._last, self._velocity = (stamp, pose), _velocity(last[1], pose, (stamp - last[0]) / 1e6)


def _velocity(
    before: tuple[float, float, float], after: tuple[float, float, float], seconds: float
) -> tuple[float, float, float]:
    """Return the velocity ahead and to the left in the robot's frame, m/s, and its turn, rad/s."""
    turn = math.remainder(after[2] - before[2], math.tau)
    heading = before[2] + turn / 2  # on the way
    dx, dy = after[0] - before[0], after[1] - before[1]
    ahead, aside = dx * math.cos(heading) + dy * math.sin(heading), dy * math.cos(heading) - dx * math.sin(heading)
    return ahead / seconds, aside / seconds, turn / seconds
