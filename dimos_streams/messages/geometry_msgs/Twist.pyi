"""Generated from lcm_types/geometry_msgs/Twist.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Vector3 import Vector3

class Twist(Message):
    """Velocity: x forward, y left, z up; rotation counter-clockwise positive."""

    linear: Vector3
    angular: Vector3

    def __init__(
        self,
        *,
        linear: Vector3 = ...,
        angular: Vector3 = ...,
    ) -> None: ...
