"""Points and poses on the floor.

A point or vector is a complex number: the real part goes forward (x), the imaginary part to the left (y), in metres.
Then ``abs`` is its length, ``cmath.phase`` its direction in radians, and multiplying by ``turned(angle)`` turns it.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.planar import planar_pose

STOP = Twist()
"""The command to stand still."""


@dataclass(frozen=True, slots=True)
class Pose:
    """A robot's position and heading in a frame that stands still."""

    position: complex = 0j
    yaw: float = 0.0

    def to_base(self, point: complex) -> complex:
        """A point of the still frame, as the robot sees it."""
        return (point - self.position) * turned(-self.yaw)

    def from_base(self, point: complex) -> complex:
        """A point that the robot sees, in the still frame."""
        return self.position + point * turned(self.yaw)


def turned(angle: float) -> complex:
    """The unit vector in a direction."""
    return cmath.rect(1.0, angle)


def wrapped(angle: float) -> float:
    """Return an angle in radians as the equal one from -pi to pi."""
    return math.remainder(angle, math.tau)


def clamped(value: float, limit: float) -> float:
    """``value``, or the nearer of ``-limit`` and ``limit``; 0 for NaN, lest what is not known become full speed."""
    return 0.0 if math.isnan(value) else max(-limit, min(limit, value))


def shortened(vector: complex, limit: float) -> complex:
    """``vector``, or if it is longer than ``limit``, the one of that length in its direction."""
    length = abs(vector)
    return vector if length <= limit else vector * (limit / length)


def pose_of(odometry: Odometry) -> Pose:
    """Position and heading that an odometry message gives. Raises ``ValueError`` if its numbers can't be a robot's:
    inputs with the test ``pose_fault`` let none of these pass."""
    found = planar_pose(odometry.pose.pose)
    if found is None:
        raise ValueError("a pose that no robot has came by an input without the test pose_fault")
    x, y, yaw = found
    return Pose(complex(x, y), yaw)


def twist(velocity: complex, turn: float) -> Twist:
    """The command to move with a velocity of the base's frame, m/s, and turn, rad/s, counter-clockwise."""
    return Twist(linear=Vector3(x=velocity.real, y=velocity.imag), angular=Vector3(z=turn))
