"""Generated from lcm_types/sensor_msgs/LaserScan.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import FloatArray, Message
from dimos_streams.messages.std_msgs.Header import Header

class LaserScan(Message):
    """One turn of a planar range finder, counter-clockwise about the frame's z."""

    ranges_length: int
    intensities_length: int
    header: Header
    angle_min: float
    angle_max: float
    angle_increment: float
    time_increment: float
    scan_time: float
    range_min: float
    range_max: float
    ranges: FloatArray
    intensities: FloatArray

    def __init__(
        self,
        *,
        header: Header = ...,
        angle_min: float = 0.0,
        angle_max: float = 0.0,
        angle_increment: float = 0.0,
        time_increment: float = 0.0,
        scan_time: float = 0.0,
        range_min: float = 0.0,
        range_max: float = 0.0,
        ranges: FloatArray = ...,
        intensities: FloatArray = ...,
    ) -> None: ...
