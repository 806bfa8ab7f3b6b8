"""Generated from lcm_types/vision_msgs/Detection2D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs.Header import Header
from dimos_streams.messages.vision_msgs.BoundingBox2D import BoundingBox2D
from dimos_streams.messages.vision_msgs.ObjectHypothesisWithPose import ObjectHypothesisWithPose

class Detection2D(Message):
    """One object found in a picture."""

    results_length: int
    header: Header
    results: list[ObjectHypothesisWithPose]
    bbox: BoundingBox2D
    id: str

    def __init__(
        self,
        *,
        header: Header = ...,
        results: list[ObjectHypothesisWithPose] = ...,
        bbox: BoundingBox2D = ...,
        id: str = "",
    ) -> None: ...
