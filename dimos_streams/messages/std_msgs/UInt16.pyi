"""Generated from lcm_types/std_msgs/UInt16.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class UInt16(Message):
    """Sixteen bits. LCM has no unsigned type for them: what is above 32767 appears as a negative number."""

    data: int

    def __init__(
        self,
        *,
        data: int = 0,
    ) -> None: ...
