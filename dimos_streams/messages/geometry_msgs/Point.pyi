"""Generated from lcm_types/geometry_msgs/Point.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Point(Message):
    """A position, metres."""

    x: float
    y: float
    z: float

    def __init__(
        self,
        *,
        x: float = 0.0,
        y: float = 0.0,
        z: float = 0.0,
    ) -> None: ...
