"""Generated from lcm_types/sensor_msgs/PointCloud2.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.sensor_msgs.PointField import PointField
from dimos_streams.messages.std_msgs.Header import Header

class PointCloud2(Message):
    """Points, each point_step bytes that the fields describe."""

    fields_length: int
    data_length: int
    header: Header
    height: int
    width: int
    fields: list[PointField]
    is_bigendian: bool
    point_step: int
    row_step: int
    data: bytes
    is_dense: bool

    def __init__(
        self,
        *,
        header: Header = ...,
        height: int = 0,
        width: int = 0,
        fields: list[PointField] = ...,
        is_bigendian: bool = False,
        point_step: int = 0,
        row_step: int = 0,
        data: bytes = b"",
        is_dense: bool = False,
    ) -> None: ...
