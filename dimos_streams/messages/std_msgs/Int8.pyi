"""Generated from lcm_types/std_msgs/Int8.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Int8(Message):
    """A whole number from -128 to 127."""

    data: int

    def __init__(
        self,
        *,
        data: int = 0,
    ) -> None: ...
