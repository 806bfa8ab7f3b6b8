"""Generated from lcm_types/geometry_msgs/TwistStamped.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Twist import Twist
from dimos_streams.messages.std_msgs.Header import Header

class TwistStamped(Message):
    """A velocity with its time and frame."""

    header: Header
    twist: Twist

    def __init__(
        self,
        *,
        header: Header = ...,
        twist: Twist = ...,
    ) -> None: ...
