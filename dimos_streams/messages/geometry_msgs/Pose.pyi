"""Generated from lcm_types/geometry_msgs/Pose.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Point import Point
from dimos_streams.messages.geometry_msgs.Quaternion import Quaternion

class Pose(Message):
    """Position (metres) and orientation in the frame that the context names."""

    position: Point
    orientation: Quaternion

    def __init__(
        self,
        *,
        position: Point = ...,
        orientation: Quaternion = ...,
    ) -> None: ...
