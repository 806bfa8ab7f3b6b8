"""The base's pose and velocity as plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BasePose:
    """Position in metres and heading in radians, in the world frame."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0


@dataclass(frozen=True, slots=True)
class Velocity:
    """Velocity in the frame of the base: forward and left in m/s, turn in rad/s."""

    vx: float = 0.0
    vy: float = 0.0
    wz: float = 0.0


STILL = Velocity()
