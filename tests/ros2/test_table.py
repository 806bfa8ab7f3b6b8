"""The table of topics, and what becomes of messages whose types differ."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.classes import missing_packages
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.wiring import wire
from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.geometry_msgs import Twist, TwistStamped, Vector3
from dimos_streams.messages.image import array_from_image, image_from_array
from dimos_streams.messages.sensor_msgs import BatteryState, CompressedImage, Image, LaserScan
from dimos_streams.messages.std_msgs import Header, String
from dimos_streams.ros2.cdr import decode, encode
from dimos_streams.ros2.config import Ros2RobotConfig
from dimos_streams.ros2.conversions import MAX_PICTURE, incoming, turned
from dimos_streams.ros2.domain import configuration
from dimos_streams.ros2.layout import struct_of
from dimos_streams.ros2.module import Ros2Robot
from dimos_streams.ros2.participant import Participant
from dimos_streams.ros2.topics import routes_of
from dimos_streams.streams import In, Out
from tests.messages.test_image_time import claiming


class Speaker(Ros2Robot):
    battery: Out[BatteryState]
    say: In[String] = In(required=False)


def config_of(**settings: Any) -> Ros2RobotConfig:
    return Ros2RobotConfig.model_validate(settings)


def faults(**settings: Any) -> list[str]:
    config = config_of(**settings)
    return [f"{'.'.join(fault.path)}: {fault.text}" for fault in Ros2Robot.problems(config)]


def test_rows_are_in_the_namespace_and_a_subclass_may_have_more() -> None:
    topics = {"odom": "odom", "battery": "/battery_state", "say": {"topic": "tts/say", "qos": "latched"}}
    routes = routes_of(config_of(namespace="/robot1", topics=topics), Speaker.streams())
    assert [(route.dds_topic, route.dds_type) for route in routes] == [
        ("rt/robot1/odom", "nav_msgs::msg::dds_::Odometry_"),
        ("rt/battery_state", "sensor_msgs::msg::dds_::BatteryState_"),
        ("rt/robot1/tts/say", "std_msgs::msg::dds_::String_"),
    ]
    assert [str(route.quality) for route in routes] == ["best effort", "best effort", "reliable, latched"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"topics": {"odm": "odom"}, "needed": []}, "topics.odm: there is no stream 'odm'; did you mean 'odom'?"),
        (
            {"topics": {"odom": {"topic": "odom", "type": "nav_msgs/msg/Odometri"}}},
            "topics.odom: 'nav_msgs/msg/Odometri' is no known type; did you mean 'nav_msgs.Odometry'?",
        ),
        (
            {"topics": {"odom": {"topic": "odom", "type": "geometry_msgs/msg/Twist"}}},
            "topics.odom: geometry_msgs/msg/Twist can't be the type of stream 'odom', which is nav_msgs.Odometry",
        ),
        (
            {"topics": {"scan": "scan", "cmd_vel": "cmd_vel"}},
            "needed: 'odom' does not come from ROS by the table of topics (that do: scan)",
        ),
        (
            {"namespace": "/robot1", "actions": {"go": "navigate", "drive": "/robot1/navigate"}},
            "actions.drive: /robot1/navigate is the action of 'go' already: an action has one row",
        ),
        ({"needed": ["cmd_vel"]}, "needed: 'cmd_vel' does not come from ROS by the table of topics"),
    ],
)
def test_a_row_that_can_not_be_is_named(settings: dict[str, Any], text: str) -> None:
    found = faults(**settings)
    assert len(found) == 1
    assert found[0].startswith(text)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"topics": {"odom": "1odom"}}, "'1odom' is no name of ROS"),
        (
            {"topics": {"odom": {"topic": "odom", "type": "Odometry"}}},
            "'Odometry' is no type of ROS: it is of the form",
        ),
        ({"namespace": "robot1"}, "'robot1' is no namespace of ROS"),
        ({"domain_id": 233}, "less than or equal to 232"),
    ],
)
def test_a_name_that_ros_can_not_have_is_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        config_of(**settings)


def test_a_velocity_gets_a_stamp_where_ros_wants_one() -> None:
    row = {"topic": "cmd_vel", "type": "geometry_msgs/msg/TwistStamped"}
    (route,) = routes_of(config_of(topics={"cmd_vel": row}, needed=()), Ros2Robot.streams())
    data = route.write(Twist(linear=Vector3(x=0.5)), Header(frame_id="base_link"))
    assert decode(struct_of(TwistStamped), data) == TwistStamped(
        header=Header(frame_id="base_link"), twist=Twist(linear=Vector3(x=0.5))
    )


def picture(size: int) -> Any:
    return np.random.default_rng(1).integers(0, 255, (size, size, 3), np.uint8)


def test_a_scan_is_turned_to_what_is_ahead() -> None:
    scan = turned(LaserScan(angle_min=-1.0, angle_max=1.0, angle_increment=0.5), 1.5)
    assert (scan.angle_min, scan.angle_max, scan.angle_increment) == (0.5, 2.5, 0.5)


def test_check_knows_the_skills_that_actions_make_and_names_two_of_one_name() -> None:
    robot = {"type": "dimos_streams.ros2.module:Ros2Robot", "config": {"actions": {"move": "navigate_to_pose"}}}
    drive = {"type": "dimos_streams.skills.drive:Drive", "remap": {"cmd_vel": "skill_vel"}}
    modules = {
        name: ModuleSpec.model_validate({"name": name, **spec}) for name, spec in (("robot", robot), ("drive", drive))
    }
    found = Blueprint(name="two", modules=modules)
    assert wire(found)["robot"].skills == ("move",)
    texts = [problem.text for problem in check(found)]
    assert "skill 'move' is offered by both 'robot' and 'drive'; use another namespace" in texts


def test_where_cyclone_is_missing_check_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    install = "pip install 'dimos-streams[ros2]' (it comes ready-made for x86-64 and Python 3.11 to 3.13 only)"
    assert missing_packages(Ros2Robot) == [f"'cyclonedds' is not installed: {install}"]


@pytest.mark.virtual_time
async def test_there_is_no_such_robot_in_virtual_time() -> None:
    with pytest.raises(UserError, match="keeps its own time: leave out --virtual-time"):
        await Participant(0).open()


def test_an_interface_that_is_not_there_is_named() -> None:
    pytest.importorskip("cyclonedds", reason="the extra `ros2` is not installed")
    with pytest.raises(UserError, match=r"on the interface 'no0' \(there are: .*lo.*\)"):
        asyncio.run(Participant(101, "no0").open())


def test_a_small_jpeg_is_given_on_as_it_is_and_a_large_one_until_it_fits() -> None:
    convert = incoming(CompressedImage, Image)
    assert convert is not None
    small, large = (image_from_array(picture(size), "jpeg", Header(frame_id="camera")) for size in (64, 320))
    assert len(large.data) > MAX_PICTURE
    assert convert(CompressedImage(header=small.header, format="jpeg", data=small.data)) == small
    smaller = convert(CompressedImage(header=large.header, format="rgb8; jpeg compressed bgr8", data=large.data))
    assert isinstance(smaller, Image)
    assert (smaller.width, smaller.height, smaller.header.frame_id) == (320, 320, "camera")
    assert len(smaller.data) < len(large.data)


def test_a_raw_picture_in_colours_becomes_a_jpeg_and_depth_stays() -> None:
    convert = incoming(Image, Image)
    assert convert is not None
    raw = image_from_array(np.full((32, 32, 3), (9, 99, 200), np.uint8), "bgr8", Header())
    found = convert(raw)
    assert isinstance(found, Image)
    assert found.encoding == "jpeg"
    assert np.abs(array_from_image(found).astype(int) - (9, 99, 200)).max() < 8
    depth = image_from_array(np.full((4, 4), 1500, np.uint16), "16UC1", Header())
    assert convert(depth) is depth


def test_a_picture_that_no_jpeg_holds_is_named() -> None:
    (route,) = routes_of(
        config_of(topics={"color_image": {"topic": "raw", "type": "sensor_msgs/msg/Image"}}, needed=()),
        Ros2Robot.streams(),
    )
    wide = Image(height=1, width=65_501, step=65_501 * 3, encoding="rgb8", data=bytes(65_501 * 3))
    with pytest.raises(MessageError, match="65501x1 pixels are no JPEG's: "):
        route.read(encode(struct_of(Image), wide))


def test_a_jpeg_that_claims_to_be_huge_is_not_decoded() -> None:
    convert = incoming(CompressedImage, Image)
    assert convert is not None
    data = claiming(40_000, 40_000)
    with pytest.raises(MessageError, match="no JPEG to decode: a JPEG of 40000x40000 pixels, more than the 33554432"):
        convert(CompressedImage(format="jpeg", data=data))


def test_a_picture_that_is_no_jpeg_is_named() -> None:
    (route,) = routes_of(config_of(topics={"color_image": "image"}, needed=()), Ros2Robot.streams())
    png = encode(struct_of(CompressedImage), CompressedImage(format="png", data=b"\x89PNG"))
    with pytest.raises(MessageError, match=r"its format is 'png', and its 4 bytes are no JPEG"):
        route.read(png)


@pytest.mark.parametrize("peers", [(), ("192.168.1.20",)])
def test_a_robot_without_multicast_is_looked_for_for_ever(peers: tuple[str, ...]) -> None:
    assert "<InitialLocatorPruneDelay>inf<" in configuration("lo", peers)  # Cyclone's own is 30 s
