"""Generated from lcm_types/std_msgs/Float32.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Float32(Message):
    """A number of single precision."""

    data: float

    def __init__(
        self,
        *,
        data: float = 0.0,
    ) -> None: ...
