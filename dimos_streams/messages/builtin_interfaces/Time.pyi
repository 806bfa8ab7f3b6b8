"""Generated from lcm_types/builtin_interfaces/Time.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Time(Message):
    """A point in time since the Unix epoch, with ROS 2 field names."""

    sec: int
    nanosec: int

    def __init__(
        self,
        *,
        sec: int = 0,
        nanosec: int = 0,
    ) -> None: ...
