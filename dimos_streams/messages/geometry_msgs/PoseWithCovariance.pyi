"""Generated from lcm_types/geometry_msgs/PoseWithCovariance.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import FloatArray, Message
from dimos_streams.messages.geometry_msgs.Pose import Pose

class PoseWithCovariance(Message):
    """A pose and how sure it is."""

    pose: Pose
    covariance: FloatArray

    def __init__(
        self,
        *,
        pose: Pose = ...,
        covariance: FloatArray = ...,
    ) -> None: ...
