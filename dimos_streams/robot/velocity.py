"""The velocity of a robot's base."""

from dataclasses import dataclass

from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.messages.velocities import is_sound


@dataclass(frozen=True, slots=True)
class Velocity:
    """Velocity in the frame of the base: forward and left in m/s, turn in rad/s."""

    vx: float = 0.0
    vy: float = 0.0
    wz: float = 0.0


STILL = Velocity()


def velocity_of(twist: Twist) -> Velocity:
    """Return the velocity that a message commands; to stand for one that is not sound."""
    return Velocity(twist.linear.x, twist.linear.y, twist.angular.z) if is_sound(twist) else STILL
