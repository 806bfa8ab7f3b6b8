"""Generated from lcm_types/sensor_msgs/CompressedImage.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs.Header import Header

class CompressedImage(Message):
    """One picture as a compressed file."""

    data_length: int
    header: Header
    format: str
    data: bytes

    def __init__(
        self,
        *,
        header: Header = ...,
        format: str = "",
        data: bytes = b"",
    ) -> None: ...
