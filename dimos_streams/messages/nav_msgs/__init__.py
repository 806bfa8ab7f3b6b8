"""Generated from lcm_types/nav_msgs/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.nav_msgs.MapMetaData import MapMetaData
from dimos_streams.messages.nav_msgs.OccupancyGrid import OccupancyGrid
from dimos_streams.messages.nav_msgs.Odometry import Odometry
from dimos_streams.messages.nav_msgs.Path import Path

__all__ = [
    "MapMetaData",
    "OccupancyGrid",
    "Odometry",
    "Path",
]
