"""Generated from lcm_types/std_msgs/UInt8.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class UInt8(Message):
    """A whole number from 0 to 255."""

    data: int

    def __init__(
        self,
        *,
        data: int = 0,
    ) -> None: ...
