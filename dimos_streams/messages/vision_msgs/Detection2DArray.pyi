"""Generated from lcm_types/vision_msgs/Detection2DArray.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs.Header import Header
from dimos_streams.messages.vision_msgs.Detection2D import Detection2D

class Detection2DArray(Message):
    """All objects found in one picture."""

    detections_length: int
    header: Header
    detections: list[Detection2D]

    def __init__(
        self,
        *,
        header: Header = ...,
        detections: list[Detection2D] = ...,
    ) -> None: ...
