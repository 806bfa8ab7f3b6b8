"""Generated from lcm_types/vision_msgs/Detection3DArray.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs.Header import Header
from dimos_streams.messages.vision_msgs.Detection3D import Detection3D

class Detection3DArray(Message):
    """All objects found in space at one time."""

    detections_length: int
    header: Header
    detections: list[Detection3D]

    def __init__(
        self,
        *,
        header: Header = ...,
        detections: list[Detection3D] = ...,
    ) -> None: ...
