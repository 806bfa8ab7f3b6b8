"""Generated from lcm_types/vision_msgs/Detection3D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs.Header import Header
from dimos_streams.messages.vision_msgs.BoundingBox3D import BoundingBox3D
from dimos_streams.messages.vision_msgs.ObjectHypothesisWithPose import ObjectHypothesisWithPose

class Detection3D(Message):
    """One object found in space."""

    results_length: int
    header: Header
    results: list[ObjectHypothesisWithPose]
    bbox: BoundingBox3D
    id: str

    def __init__(
        self,
        *,
        header: Header = ...,
        results: list[ObjectHypothesisWithPose] = ...,
        bbox: BoundingBox3D = ...,
        id: str = "",
    ) -> None: ...
