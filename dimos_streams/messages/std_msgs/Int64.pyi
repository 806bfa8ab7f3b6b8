"""Generated from lcm_types/std_msgs/Int64.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Int64(Message):
    """A whole number of 64 bits."""

    data: int

    def __init__(
        self,
        *,
        data: int = 0,
    ) -> None: ...
