"""Generated from lcm_types/sensor_msgs/RegionOfInterest.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class RegionOfInterest(Message):
    """A part of a picture, pixels. All zeros is the whole picture."""

    x_offset: int
    y_offset: int
    height: int
    width: int
    do_rectify: bool

    def __init__(
        self,
        *,
        x_offset: int = 0,
        y_offset: int = 0,
        height: int = 0,
        width: int = 0,
        do_rectify: bool = False,
    ) -> None: ...
