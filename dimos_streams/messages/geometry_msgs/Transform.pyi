"""Generated from lcm_types/geometry_msgs/Transform.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Quaternion import Quaternion
from dimos_streams.messages.geometry_msgs.Vector3 import Vector3

class Transform(Message):
    """Takes coordinates in the child frame to the parent frame."""

    translation: Vector3
    rotation: Quaternion

    def __init__(
        self,
        *,
        translation: Vector3 = ...,
        rotation: Quaternion = ...,
    ) -> None: ...
