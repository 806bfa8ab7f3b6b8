"""What all who send velocities to a robot's base agree on."""

from typing import Final

PARTING_ZEROS: Final = 5
"""The number of zeros that follow the last velocity, because one may get lost."""
