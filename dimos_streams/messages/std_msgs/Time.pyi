"""Generated from lcm_types/std_msgs/Time.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Time(Message):
    """A point in time since the Unix epoch."""

    sec: int
    nsec: int

    def __init__(
        self,
        *,
        sec: int = 0,
        nsec: int = 0,
    ) -> None: ...
