"""A robot on Cyclone DDS whose types say what they consist of, as a program: ``typed_robot.py DOMAIN``.

It tells its odometry and pictures, ends with its input, and prints "moved" once it gets a velocity.
"""

# mypy: ignore-errors
# Cyclone has no types for its arrays.

import os
import sys
import threading
import time
from dataclasses import dataclass, field

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float32, float64, int32, sequence, uint8, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

CONFIG = (
    "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name='lo'/></Interfaces>"
    "<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>"
    "<MaxAutoParticipantIndex>30</MaxAutoParticipantIndex><Peers><Peer address='127.0.0.1'/></Peers>"
    "<SPDPInterval>1s</SPDPInterval></Discovery></Domain></CycloneDDS>"
)


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: int32 = 0
    nanosec: uint32 = 0


@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    stamp: Time = field(default_factory=Time)
    frame_id: str = "odom"


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@dataclass
class Point(IdlStruct, typename="geometry_msgs::msg::dds_::Point_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0
    w: float64 = 1.0


@dataclass
class Pose(IdlStruct, typename="geometry_msgs::msg::dds_::Pose_"):
    position: Point = field(default_factory=Point)
    orientation: Quaternion = field(default_factory=Quaternion)


@dataclass
class Twist(IdlStruct, typename="geometry_msgs::msg::dds_::Twist_"):
    linear: Vector3 = field(default_factory=Vector3)
    angular: Vector3 = field(default_factory=Vector3)


@dataclass
class PoseWithCovariance(IdlStruct, typename="geometry_msgs::msg::dds_::PoseWithCovariance_"):
    pose: Pose = field(default_factory=Pose)
    covariance: array[float64, 36] = field(default_factory=lambda: [0.0] * 36)


@dataclass
class TwistWithCovariance(IdlStruct, typename="geometry_msgs::msg::dds_::TwistWithCovariance_"):
    twist: Twist = field(default_factory=Twist)
    covariance: array[float64, 36] = field(default_factory=lambda: [0.0] * 36)


@dataclass
class Odometry(IdlStruct, typename="nav_msgs::msg::dds_::Odometry_"):
    header: Header = field(default_factory=Header)
    child_frame_id: str = "base_link"
    pose: PoseWithCovariance = field(default_factory=PoseWithCovariance)
    twist: TwistWithCovariance = field(default_factory=TwistWithCovariance)


@dataclass
class Image(IdlStruct, typename="sensor_msgs::msg::dds_::Image_"):
    header: Header = field(default_factory=Header)
    height: uint32 = 1
    width: uint32 = 2
    encoding: str = "rgb8"
    is_bigendian: uint8 = 0
    step: uint32 = 6
    data: sequence[uint8] = field(default_factory=lambda: [1, 2, 3, 4, 5, 6])


@dataclass
class OtherScan(IdlStruct, typename="sensor_msgs::msg::dds_::LaserScan_"):
    """It has the name of ROS's only."""

    ranges: sequence[float32] = ()


def main() -> None:
    domain = int(sys.argv[1])
    kept = Domain(domain, CONFIG)
    me = DomainParticipant(domain)
    qos = Qos(
        Policy.Reliability.Reliable(0),
        Policy.History.KeepLast(10),
        Policy.DataRepresentation(use_cdrv0_representation=True),
    )
    odom = DataWriter(me, Topic(me, "rt/odom", Odometry), qos=qos)
    image = DataWriter(me, Topic(me, "rt/image", Image), qos=qos)
    scan = DataWriter(me, Topic(me, "rt/scan", OtherScan), qos=qos)
    commands = DataReader(me, Topic(me, "rt/cmd_vel", Twist), qos=qos)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    moved = False
    while kept and scan:
        odom.write(Odometry())
        image.write(Image())
        if not moved and any(getattr(each, "linear", Vector3()).x == 0.4 for each in commands.take(10)):
            moved = True
            sys.stdout.write("moved\n")
            sys.stdout.flush()
        time.sleep(0.05)


main()
