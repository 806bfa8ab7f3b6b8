"""Generated from lcm_types/std_msgs/Bool.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Bool(Message):
    data: bool

    def __init__(
        self,
        *,
        data: bool = False,
    ) -> None: ...
