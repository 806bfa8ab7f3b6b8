"""A person's place and the commands to go after them. Free of I/O; times are handed in.

Points are complex numbers, see ``planar``.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

from dimos_streams.skills.moving.planar import Pose, clamped, turned

POSITION_GAIN = 0.6
VELOCITY_GAIN = 0.15
FASTEST = 1.6
"""m/s that a person is believed to walk; more is noise."""
HORIZON_S = 0.6
"""Seconds for which a person is believed to walk straight on."""


@dataclass(frozen=True, slots=True)
class Gains:
    """The gains of the controller. ``motion`` says how much of the person's own motion is answered at once."""

    distance: float
    bearing: float
    motion: float


@dataclass(frozen=True, slots=True)
class PursuitLimits:
    """The limits of the commands, m/s and rad/s."""

    speed: float
    turn: float


class Target:
    """A person's position and velocity in a frame that stands still, smoothed (an alpha-beta filter)."""

    def __init__(self, point: complex, at: float) -> None:
        self.point = point
        self.velocity = 0j
        self.seen_at = at

    def add(self, point: complex, at: float) -> None:
        """Take a new sighting. One that is older than the last changes nothing."""
        elapsed = at - self.seen_at
        if elapsed <= 0.0:
            return
        predicted = self.point + self.velocity * elapsed
        surprise = point - predicted
        self.point = predicted + POSITION_GAIN * surprise
        self.velocity += VELOCITY_GAIN * surprise / max(elapsed, 0.05)
        self.velocity *= min(1.0, FASTEST / max(abs(self.velocity), 1e-9))
        self.seen_at = at

    def expected(self, at: float) -> complex:
        """Return the point where the person should be at that time."""
        return self.point + self.velocity * min(max(at - self.seen_at, 0.0), HORIZON_S)


def approach(
    target: Target, at: float, pose: Pose, distance: float, gains: Gains, limits: PursuitLimits
) -> tuple[complex, float]:
    """The velocity in base_link, and the turn, that keep the distance to a person and face them."""
    seen = pose.to_base(target.expected(at))
    motion = target.velocity * turned(-pose.yaw)
    towards = seen / max(abs(seen), 1e-6)
    # The person's motion along the line of sight, and across it.
    along, across = (motion * towards.conjugate()).real, (motion * towards.conjugate()).imag
    speed = gains.distance * (abs(seen) - distance) + gains.motion * along
    turn = gains.bearing * cmath.phase(seen) + gains.motion * across / max(abs(seen), 0.5)
    # Someone who is not in front is faced before they are approached.
    facing = max(0.0, math.cos(cmath.phase(seen)))
    return towards * clamped(speed, limits.speed) * facing, clamped(turn, limits.turn)


def face(bearing: float, gains: Gains, limits: PursuitLimits) -> float:
    """The turn that faces a direction of base_link."""
    return clamped(gains.bearing * bearing, limits.turn)
