"""Generated from lcm_types/geometry_msgs/Quaternion.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Quaternion(Message):
    """A rotation, unit quaternion. All zeros, as constructed, is no rotation at all: set w to 1."""

    x: float
    y: float
    z: float
    w: float

    def __init__(
        self,
        *,
        x: float = 0.0,
        y: float = 0.0,
        z: float = 0.0,
        w: float = 0.0,
    ) -> None: ...
