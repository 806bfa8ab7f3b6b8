"""The agreement between all who send velocities to a robot's base, and all who take them."""

import math
from typing import Final

from dimos_streams.messages.geometry_msgs import Twist

PARTING_ZEROS: Final = 5
"""The number of zeros that follow the last velocity, because one may get lost."""


def is_sound(velocity: Twist) -> bool:
    """Return whether all six values are finite. One of which any is not counts as a command to stand, on axes too on
    which the base can't move: its sender has lost count."""
    parts = (velocity.linear, velocity.angular)
    return all(math.isfinite(value) for part in parts for value in (part.x, part.y, part.z))
