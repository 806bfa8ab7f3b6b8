"""Generated from lcm_types/std_msgs/Int16.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Int16(Message):
    """A whole number of 16 bits."""

    data: int

    def __init__(
        self,
        *,
        data: int = 0,
    ) -> None: ...
