"""Generated from lcm_types/nav_msgs/OccupancyGrid.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import IntArray, Message
from dimos_streams.messages.nav_msgs.MapMetaData import MapMetaData
from dimos_streams.messages.std_msgs.Header import Header

class OccupancyGrid(Message):
    """A map of cells."""

    data_length: int
    header: Header
    info: MapMetaData
    data: IntArray

    def __init__(
        self,
        *,
        header: Header = ...,
        info: MapMetaData = ...,
        data: IntArray = ...,
    ) -> None: ...
