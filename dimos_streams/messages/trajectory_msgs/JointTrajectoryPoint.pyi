"""Generated from lcm_types/trajectory_msgs/JointTrajectoryPoint.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import FloatArray, Message
from dimos_streams.messages.std_msgs.Duration import Duration

class JointTrajectoryPoint(Message):
    """Where joints shall be at a time; each array is empty or as long as the trajectory's names."""

    positions_length: int
    velocities_length: int
    accelerations_length: int
    effort_length: int
    positions: FloatArray
    velocities: FloatArray
    accelerations: FloatArray
    effort: FloatArray
    time_from_start: Duration

    def __init__(
        self,
        *,
        positions: FloatArray = ...,
        velocities: FloatArray = ...,
        accelerations: FloatArray = ...,
        effort: FloatArray = ...,
        time_from_start: Duration = ...,
    ) -> None: ...
