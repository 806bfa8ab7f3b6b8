"""Generated from lcm_types/geometry_msgs/PoseStamped.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Pose import Pose
from dimos_streams.messages.std_msgs.Header import Header

class PoseStamped(Message):
    """A pose with its time and frame."""

    header: Header
    pose: Pose

    def __init__(
        self,
        *,
        header: Header = ...,
        pose: Pose = ...,
    ) -> None: ...
