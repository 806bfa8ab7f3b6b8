"""Generated from lcm_types/std_msgs/UInt32.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class UInt32(Message):
    """Thirty-two bits. LCM has no unsigned type for them: what is above 2147483647 appears as a negative number."""

    data: int

    def __init__(
        self,
        *,
        data: int = 0,
    ) -> None: ...
