"""Generated from lcm_types/vision_msgs/BoundingBox3D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Pose import Pose
from dimos_streams.messages.geometry_msgs.Vector3 import Vector3

class BoundingBox3D(Message):
    """A box in space."""

    center: Pose
    size: Vector3

    def __init__(
        self,
        *,
        center: Pose = ...,
        size: Vector3 = ...,
    ) -> None: ...
