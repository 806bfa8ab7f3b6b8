"""Generated from lcm_types/geometry_msgs/PoseArray.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Pose import Pose
from dimos_streams.messages.std_msgs.Header import Header

class PoseArray(Message):
    """Poses of one time and frame."""

    poses_length: int
    header: Header
    poses: list[Pose]

    def __init__(
        self,
        *,
        header: Header = ...,
        poses: list[Pose] = ...,
    ) -> None: ...
