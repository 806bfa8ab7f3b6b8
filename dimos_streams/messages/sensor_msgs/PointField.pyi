"""Generated from lcm_types/sensor_msgs/PointField.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from typing import ClassVar

from dimos_streams.messages.base import Message

class PointField(Message):
    """One channel of a point cloud and where it lies in a point."""

    INT8: ClassVar[int]
    UINT8: ClassVar[int]
    INT16: ClassVar[int]
    UINT16: ClassVar[int]
    INT32: ClassVar[int]
    UINT32: ClassVar[int]
    FLOAT32: ClassVar[int]
    FLOAT64: ClassVar[int]
    name: str
    offset: int
    datatype: int
    count: int

    def __init__(
        self,
        *,
        name: str = "",
        offset: int = 0,
        datatype: int = 0,
        count: int = 0,
    ) -> None: ...
