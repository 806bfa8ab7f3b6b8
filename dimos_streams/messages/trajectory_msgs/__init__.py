"""Generated from lcm_types/trajectory_msgs/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.trajectory_msgs.JointTrajectory import JointTrajectory
from dimos_streams.messages.trajectory_msgs.JointTrajectoryPoint import JointTrajectoryPoint

__all__ = [
    "JointTrajectory",
    "JointTrajectoryPoint",
]
