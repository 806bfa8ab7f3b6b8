"""Generated from lcm_types/std_msgs/Header.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs.Time import Time

class Header(Message):
    """When and in which frame the data of a message was taken."""

    seq: int
    stamp: Time
    frame_id: str

    def __init__(
        self,
        *,
        seq: int = 0,
        stamp: Time = ...,
        frame_id: str = "",
    ) -> None: ...
