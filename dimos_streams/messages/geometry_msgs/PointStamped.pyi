"""Generated from lcm_types/geometry_msgs/PointStamped.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Point import Point
from dimos_streams.messages.std_msgs.Header import Header

class PointStamped(Message):
    """A point with its time and frame."""

    header: Header
    point: Point

    def __init__(
        self,
        *,
        header: Header = ...,
        point: Point = ...,
    ) -> None: ...
