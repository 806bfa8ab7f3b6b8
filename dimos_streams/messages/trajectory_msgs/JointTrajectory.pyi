"""Generated from lcm_types/trajectory_msgs/JointTrajectory.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs.Header import Header
from dimos_streams.messages.trajectory_msgs.JointTrajectoryPoint import JointTrajectoryPoint

class JointTrajectory(Message):
    """How joints shall move."""

    joint_names_length: int
    points_length: int
    header: Header
    joint_names: list[str]
    points: list[JointTrajectoryPoint]

    def __init__(
        self,
        *,
        header: Header = ...,
        joint_names: list[str] = ...,
        points: list[JointTrajectoryPoint] = ...,
    ) -> None: ...
