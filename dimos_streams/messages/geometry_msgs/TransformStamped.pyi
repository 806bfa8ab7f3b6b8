"""Generated from lcm_types/geometry_msgs/TransformStamped.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Transform import Transform
from dimos_streams.messages.std_msgs.Header import Header

class TransformStamped(Message):
    """Where child_frame_id stands in header.frame_id, and when."""

    header: Header
    child_frame_id: str
    transform: Transform

    def __init__(
        self,
        *,
        header: Header = ...,
        child_frame_id: str = "",
        transform: Transform = ...,
    ) -> None: ...
