"""Generated from lcm_types/vision_msgs/Point2D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Point2D(Message):
    """A place in a picture, pixels: x right, y down."""

    x: float
    y: float

    def __init__(
        self,
        *,
        x: float = 0.0,
        y: float = 0.0,
    ) -> None: ...
