"""Generated from lcm_types/std_msgs/UInt64.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class UInt64(Message):
    """Sixty-four bits. LCM has no unsigned type for them: what is above 9223372036854775807 appears as a negative number."""

    data: int

    def __init__(
        self,
        *,
        data: int = 0,
    ) -> None: ...
