"""Generated from lcm_types/nav_msgs/Path.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.PoseStamped import PoseStamped
from dimos_streams.messages.std_msgs.Header import Header

class Path(Message):
    """A way to go, in order."""

    poses_length: int
    header: Header
    poses: list[PoseStamped]

    def __init__(
        self,
        *,
        header: Header = ...,
        poses: list[PoseStamped] = ...,
    ) -> None: ...
