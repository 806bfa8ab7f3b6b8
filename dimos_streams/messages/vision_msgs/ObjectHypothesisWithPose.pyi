"""Generated from lcm_types/vision_msgs/ObjectHypothesisWithPose.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.PoseWithCovariance import PoseWithCovariance
from dimos_streams.messages.vision_msgs.ObjectHypothesis import ObjectHypothesis

class ObjectHypothesisWithPose(Message):
    """What an object may be, and where."""

    hypothesis: ObjectHypothesis
    pose: PoseWithCovariance

    def __init__(
        self,
        *,
        hypothesis: ObjectHypothesis = ...,
        pose: PoseWithCovariance = ...,
    ) -> None: ...
