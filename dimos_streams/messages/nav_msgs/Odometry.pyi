"""Generated from lcm_types/nav_msgs/Odometry.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.PoseWithCovariance import PoseWithCovariance
from dimos_streams.messages.geometry_msgs.TwistWithCovariance import TwistWithCovariance
from dimos_streams.messages.std_msgs.Header import Header

class Odometry(Message):
    """Where a robot believes it is and how fast it moves."""

    header: Header
    child_frame_id: str
    pose: PoseWithCovariance
    twist: TwistWithCovariance

    def __init__(
        self,
        *,
        header: Header = ...,
        child_frame_id: str = "",
        pose: PoseWithCovariance = ...,
        twist: TwistWithCovariance = ...,
    ) -> None: ...
