"""Generated from lcm_types/sensor_msgs/Imu.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import FloatArray, Message
from dimos_streams.messages.geometry_msgs.Quaternion import Quaternion
from dimos_streams.messages.geometry_msgs.Vector3 import Vector3
from dimos_streams.messages.std_msgs.Header import Header

class Imu(Message):
    """Inertial measurement. A covariance that begins with -1 says that the quantity is not measured."""

    header: Header
    orientation: Quaternion
    orientation_covariance: FloatArray
    angular_velocity: Vector3
    angular_velocity_covariance: FloatArray
    linear_acceleration: Vector3
    linear_acceleration_covariance: FloatArray

    def __init__(
        self,
        *,
        header: Header = ...,
        orientation: Quaternion = ...,
        orientation_covariance: FloatArray = ...,
        angular_velocity: Vector3 = ...,
        angular_velocity_covariance: FloatArray = ...,
        linear_acceleration: Vector3 = ...,
        linear_acceleration_covariance: FloatArray = ...,
    ) -> None: ...
