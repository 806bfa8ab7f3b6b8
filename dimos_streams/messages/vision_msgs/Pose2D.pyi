"""Generated from lcm_types/vision_msgs/Pose2D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.vision_msgs.Point2D import Point2D

class Pose2D(Message):
    """A place and a rotation in a picture."""

    position: Point2D
    theta: float

    def __init__(
        self,
        *,
        position: Point2D = ...,
        theta: float = 0.0,
    ) -> None: ...
