"""The velocity of a robot's base."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Velocity:
    """Velocity in the frame of the base: forward and left in m/s, turn in rad/s."""

    vx: float = 0.0
    vy: float = 0.0
    wz: float = 0.0


STILL = Velocity()
