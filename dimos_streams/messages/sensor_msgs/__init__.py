"""Generated from lcm_types/sensor_msgs/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.sensor_msgs.BatteryState import BatteryState
from dimos_streams.messages.sensor_msgs.CameraInfo import CameraInfo
from dimos_streams.messages.sensor_msgs.CompressedImage import CompressedImage
from dimos_streams.messages.sensor_msgs.Image import Image
from dimos_streams.messages.sensor_msgs.Imu import Imu
from dimos_streams.messages.sensor_msgs.JointState import JointState
from dimos_streams.messages.sensor_msgs.Joy import Joy
from dimos_streams.messages.sensor_msgs.LaserScan import LaserScan
from dimos_streams.messages.sensor_msgs.PointCloud2 import PointCloud2
from dimos_streams.messages.sensor_msgs.PointField import PointField
from dimos_streams.messages.sensor_msgs.RegionOfInterest import RegionOfInterest

__all__ = [
    "BatteryState",
    "CameraInfo",
    "CompressedImage",
    "Image",
    "Imu",
    "JointState",
    "Joy",
    "LaserScan",
    "PointCloud2",
    "PointField",
    "RegionOfInterest",
]
