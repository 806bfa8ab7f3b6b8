"""Velocities on their way out to ROS: they end when those who command are silent, or when the robot is blind."""

from __future__ import annotations

import math

from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.messages.velocities import PARTING_ZEROS, is_sound

_HELD_UP_S = 0.5
"""The longest time, in seconds, that a module may be held up; later it finds velocities that are no longer meant."""
_STALE_S = 0.2
"""Seconds after that for which it takes no velocity."""


class VelocityRelay:
    """The newest velocity of the gate, and the velocities to send because of it. Time is handed in, in seconds."""

    def __init__(self, timeout_s: float) -> None:
        """A velocity that is not repeated for ``timeout_s`` counts as zero."""
        self._timeout_s = timeout_s
        self._newest: Twist | None = None
        self._at = -math.inf
        self._moving = False
        self._zeros = 0
        self._parted = False
        self._looked_at: float | None = None
        self._deaf_until = -math.inf

    @property
    def due_zeros(self) -> int:
        """The number of zeros that are yet to be sent, if no velocity comes."""
        return self._zeros

    def command(self, velocity: Twist) -> None:
        """Take a velocity; one that has not been sent yet is forgotten."""
        if not self._parted:
            self._newest = velocity

    def part(self) -> None:
        """Take no velocity any more, and have zeros follow the last one, if the robot moves by it."""
        self._parted, self._newest = True, None
        if self._moving:
            self._moving, self._zeros = False, PARTING_ZEROS

    def look(self, now: float) -> None:
        """Note when the module itself was held up. Call this at a steady rate, and before ``due``."""
        if self._looked_at is not None and now - self._looked_at > _HELD_UP_S:
            self._deaf_until, self._newest = now + _STALE_S, None
            self._zeros, self._moving = PARTING_ZEROS, False
        self._looked_at = now

    def due(self, now: float, *, free: bool) -> Twist | None:
        """Return the velocity to send now, or None for nothing. It is zero unless the robot is ``free`` to move."""
        velocity, self._newest = self._newest, None
        if velocity is not None:
            self._at = now
            if free and now >= self._deaf_until and is_sound(velocity):
                self._moving, self._zeros = velocity != Twist(), 0
                return velocity
            self._zeros = max(self._zeros, 1)  # who commands a robot that stands has it told so, too
        if self._moving and (velocity is not None or not free or now - self._at > self._timeout_s):
            self._moving, self._zeros = False, PARTING_ZEROS
        if not self._zeros:
            return None
        self._zeros -= 1
        return Twist()
