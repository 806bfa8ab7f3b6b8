"""Generated from lcm_types/nav_msgs/MapMetaData.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.Pose import Pose
from dimos_streams.messages.std_msgs.Time import Time

class MapMetaData(Message):
    """Size and place of an occupancy grid."""

    map_load_time: Time
    resolution: float
    width: int
    height: int
    origin: Pose

    def __init__(
        self,
        *,
        map_load_time: Time = ...,
        resolution: float = 0.0,
        width: int = 0,
        height: int = 0,
        origin: Pose = ...,
    ) -> None: ...
