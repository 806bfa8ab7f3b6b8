"""Generated from lcm_types/foxglove_msgs/CompressedVideo.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.builtin_interfaces.Time import Time

class CompressedVideo(Message):
    """One packet of an encoded video, which needs those before it."""

    data_length: int
    timestamp: Time
    frame_id: str
    data: bytes
    format: str

    def __init__(
        self,
        *,
        timestamp: Time = ...,
        frame_id: str = "",
        data: bytes = b"",
        format: str = "",
    ) -> None: ...
