"""The measurements of the simulated sensors, as messages. `now` is in µs since the epoch."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dimos_streams.messages import geometry_msgs
from dimos_streams.messages.geometry_msgs import (
    Point,
    PoseWithCovariance,
    Quaternion,
    Transform,
    TransformStamped,
    Twist,
    TwistWithCovariance,
    Vector3,
)
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.messages.sensor_msgs import CameraInfo, LaserScan
from dimos_streams.messages.std_msgs import Header
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.time import header
from dimos_streams.robot.simulation.mjcf import CAMERA_FORWARD, CAMERA_HEIGHT
from dimos_streams.robot.simulation.people import Stance
from dimos_streams.robot.velocity import Velocity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dimos_streams.robot.rendering.camera import CameraModel
    from dimos_streams.robot.rendering.lidar import LidarModel

# From base_link (x forward, z up) to an optical frame (z forward, y down).
_MOUNT = Transform(
    translation=Vector3(x=CAMERA_FORWARD, z=CAMERA_HEIGHT), rotation=Quaternion(x=-0.5, y=0.5, z=-0.5, w=0.5)
)


def odometry(now: int, pose: PlanarPose, twist: Velocity) -> Odometry:
    """Pose in odom, velocity in base_link."""
    place = geometry_msgs.Pose(position=Point(x=pose.x, y=pose.y), orientation=_turned(pose.yaw))
    motion = Twist(linear=Vector3(x=twist.vx, y=twist.vy), angular=Vector3(z=twist.wz))
    return Odometry(
        header=header("odom", now),
        child_frame_id="base_link",
        pose=PoseWithCovariance(pose=place),
        twist=TwistWithCovariance(twist=motion),
    )


def frames(now: int, pose: PlanarPose) -> TFMessage:
    """world → odom → base_link → camera_optical."""
    camera = TransformStamped(header=header("base_link", now), child_frame_id="camera_optical", transform=_MOUNT)
    odom = _planar("world", "odom", now, 0.0, 0.0, 0.0)
    base = _planar("odom", "base_link", now, pose.x, pose.y, pose.yaw)
    return TFMessage(transforms=[odom, base, camera])


def ground_truth(now: int, pose: PlanarPose, people: Mapping[str, Stance]) -> TFMessage:
    """The transforms world → base_link, and world → each person who is in the room."""
    base = _planar("world", "base_link", now, pose.x, pose.y, pose.yaw)
    others = [_planar("world", name, now, stance.x, stance.y, stance.yaw) for name, stance in people.items()]
    return TFMessage(transforms=[base, *others])


def laser_scan(now: int, model: "LidarModel", ranges: "NDArray[np.float32]", rate: float) -> LaserScan:
    """One turn of the lidar, measured in an instant."""
    return LaserScan(
        header=header("base_link", now),
        angle_min=-math.pi,
        angle_max=math.pi - model.increment,
        angle_increment=model.increment,
        scan_time=1.0 / rate,
        range_min=model.range_min,
        range_max=model.range_max,
        ranges=ranges,
    )


def camera_info(stamp: Header, model: "CameraModel") -> CameraInfo:
    """Intrinsics of the colour picture."""
    f, (cx, cy) = model.focal_length, model.centre
    return CameraInfo(
        header=stamp,
        height=model.height,
        width=model.width,
        distortion_model="plumb_bob",
        D=[0.0] * 5,
        K=[f, 0.0, cx, 0.0, f, cy, 0.0, 0.0, 1.0],
        R=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        P=[f, 0.0, cx, 0.0, 0.0, f, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
    )


def _turned(yaw: float) -> Quaternion:
    return Quaternion(z=math.sin(yaw / 2), w=math.cos(yaw / 2))


def _planar(parent: str, child: str, now: int, x: float, y: float, yaw: float) -> TransformStamped:
    transform = Transform(translation=Vector3(x=x, y=y), rotation=_turned(yaw))
    return TransformStamped(header=header(parent, now), child_frame_id=child, transform=transform)
