"""Generated from lcm_types/sensor_msgs/CameraInfo.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import FloatArray, Message
from dimos_streams.messages.sensor_msgs.RegionOfInterest import RegionOfInterest
from dimos_streams.messages.std_msgs.Header import Header

class CameraInfo(Message):
    """How a camera projects points of its optical frame to pixels."""

    D_length: int
    header: Header
    height: int
    width: int
    distortion_model: str
    D: FloatArray
    K: FloatArray
    R: FloatArray
    P: FloatArray
    binning_x: int
    binning_y: int
    roi: RegionOfInterest

    def __init__(
        self,
        *,
        header: Header = ...,
        height: int = 0,
        width: int = 0,
        distortion_model: str = "",
        D: FloatArray = ...,
        K: FloatArray = ...,
        R: FloatArray = ...,
        P: FloatArray = ...,
        binning_x: int = 0,
        binning_y: int = 0,
        roi: RegionOfInterest = ...,
    ) -> None: ...
