"""Generated from lcm_types/sensor_msgs/Image.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs.Header import Header

class Image(Message):
    """One picture."""

    data_length: int
    header: Header
    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: bytes

    def __init__(
        self,
        *,
        header: Header = ...,
        height: int = 0,
        width: int = 0,
        encoding: str = "",
        is_bigendian: int = 0,
        step: int = 0,
        data: bytes = b"",
    ) -> None: ...
