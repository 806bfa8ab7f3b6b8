"""Generated from lcm_types/geometry_msgs/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.geometry_msgs.Point import Point
from dimos_streams.messages.geometry_msgs.PointStamped import PointStamped
from dimos_streams.messages.geometry_msgs.Pose import Pose
from dimos_streams.messages.geometry_msgs.PoseArray import PoseArray
from dimos_streams.messages.geometry_msgs.PoseStamped import PoseStamped
from dimos_streams.messages.geometry_msgs.PoseWithCovariance import PoseWithCovariance
from dimos_streams.messages.geometry_msgs.Quaternion import Quaternion
from dimos_streams.messages.geometry_msgs.Transform import Transform
from dimos_streams.messages.geometry_msgs.TransformStamped import TransformStamped
from dimos_streams.messages.geometry_msgs.Twist import Twist
from dimos_streams.messages.geometry_msgs.TwistStamped import TwistStamped
from dimos_streams.messages.geometry_msgs.TwistWithCovariance import TwistWithCovariance
from dimos_streams.messages.geometry_msgs.Vector3 import Vector3

__all__ = [
    "Point",
    "PointStamped",
    "Pose",
    "PoseArray",
    "PoseStamped",
    "PoseWithCovariance",
    "Quaternion",
    "Transform",
    "TransformStamped",
    "Twist",
    "TwistStamped",
    "TwistWithCovariance",
    "Vector3",
]
