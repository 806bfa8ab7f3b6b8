"""Generated from lcm_types/std_msgs/String.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class String(Message):
    """Text, UTF-8."""

    data: str

    def __init__(
        self,
        *,
        data: str = "",
    ) -> None: ...
