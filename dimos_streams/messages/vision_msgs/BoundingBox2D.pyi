"""Generated from lcm_types/vision_msgs/BoundingBox2D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.vision_msgs.Pose2D import Pose2D

class BoundingBox2D(Message):
    """A box around its centre."""

    center: Pose2D
    size_x: float
    size_y: float

    def __init__(
        self,
        *,
        center: Pose2D = ...,
        size_x: float = 0.0,
        size_y: float = 0.0,
    ) -> None: ...
