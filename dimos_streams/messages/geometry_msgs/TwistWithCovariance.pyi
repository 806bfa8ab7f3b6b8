"""Generated from lcm_types/geometry_msgs/TwistWithCovariance.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import FloatArray, Message
from dimos_streams.messages.geometry_msgs.Twist import Twist

class TwistWithCovariance(Message):
    """A velocity and how sure it is."""

    twist: Twist
    covariance: FloatArray

    def __init__(
        self,
        *,
        twist: Twist = ...,
        covariance: FloatArray = ...,
    ) -> None: ...
