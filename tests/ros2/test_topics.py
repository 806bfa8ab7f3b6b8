"""What is said of topics that come and are of little use, in virtual time."""

from __future__ import annotations

import pytest

from dimos_streams.messages.geometry_msgs import TransformStamped
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.messages.std_msgs import Header
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.ros2 import conversions
from dimos_streams.ros2.cdr import encode
from dimos_streams.ros2.config import Ros2RobotConfig
from dimos_streams.ros2.conversions import FixedFrames
from dimos_streams.ros2.layout import struct_of
from dimos_streams.ros2.module import Ros2Robot
from dimos_streams.ros2.topics import routes_of
from dimos_streams.ros2.watch import troubles_of
from dimos_streams.ros2.wire import DEFAULT, Endpoint
from tests.helpers import until
from tests.ros2.action_world import world

pytestmark = pytest.mark.feature("G4")


@pytest.mark.virtual_time
async def test_a_topic_of_which_nothing_can_be_decoded_is_named() -> None:
    async with world() as at:
        at.sees = False
        await at.health("/odom has not said anything for")
        at.wire.deliver("rt/odom", b"\x00\x01\x00\x00cut")
        await at.health("what comes on /odom can't be used: bad nav_msgs/msg/Odometry: ")
        assert at.harness.module.health.endswith(": the robot is made to stand")
        at.sees = True
        await at.health("ok")


@pytest.mark.parametrize(("frames", "lines"), [(["base_link"], 0), (["laser", "base_link", "laser", "base_link"], 1)])
@pytest.mark.virtual_time
async def test_only_a_frame_other_than_the_bases_is_warned_of(
    frames: list[str], lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(scan="scan") as at:
        for frame in frames:
            at.wire.deliver("rt/scan", encode(struct_of(LaserScan), LaserScan(header=Header(frame_id=frame))))
        assert caplog.text.count("is taken for ahead") == lines
        assert "frame 'base_link'" not in caplog.text


@pytest.mark.virtual_time
async def test_frames_that_are_said_once_are_repeated_for_those_who_come_later() -> None:
    async with world(tf_static="/tf_static") as at:
        for child in ("camera", "laser", "camera"):
            frame = TransformStamped(header=Header(frame_id="base_link"), child_frame_id=child)
            frame.header.stamp.sec = 7
            at.wire.deliver("rt/tf_static", encode(struct_of(TFMessage), TFMessage(transforms=[frame])))
        await until(lambda: len(at.harness.sent("tf_static")) >= 2)
        said = at.harness.sent("tf_static")[-1].transforms
        assert [(each.child_frame_id, each.header.stamp.sec) for each in said] == [("camera", 0), ("laser", 0)]
        await at.health("ok")


def test_of_what_is_latched_each_writers_is_read() -> None:
    (fixed,) = (
        route
        for route in routes_of(Ros2RobotConfig.model_validate({}), Ros2Robot.streams())
        if route.topic == "/tf_static"
    )
    assert (fixed.stream.name, fixed.quality.latched, fixed.quality.depth) == ("tf_static", True, 100)


def test_static_frames_for_which_there_is_no_room_are_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(conversions, "_MAX_FRAMES", 2)
    frames = FixedFrames()
    for child in ("laser", "camera", "laser", "arm", "hand"):
        frames.add(TFMessage(transforms=[TransformStamped(child_frame_id=child)]))
    assert frames.message is not None
    assert [frame.child_frame_id for frame in frames.message.transforms] == ["laser", "camera"]
    assert caplog.messages == ["/tf_static has more than 2 frames: 'arm' and further ones are left out"]


@pytest.mark.parametrize(
    ("demands", "text"),
    [
        (
            (("a deadline of 0.1 s",), ("a deadline of 0.1 s", "liveliness within 1 s")),
            "is asked for with a deadline of 0.1 s, liveliness within 1 s, which nothing here has: "
            "leave it out on the robot",
        ),
        # One of them has nothing of that, and is not connected either.
        ((("a deadline of 0.1 s",), ()), "is there, but does not match: geometry_msgs/msg/Twist has other fields"),
    ],
)
def test_settings_that_keep_a_topic_from_being_connected_are_named(
    demands: tuple[tuple[str, ...], ...], text: str
) -> None:
    config = Ros2RobotConfig.model_validate({"topics": {"odom": "odom", "cmd_vel": "cmd_vel"}})
    (route,) = (route for route in routes_of(config, Ros2Robot.streams()) if route.stream.name == "cmd_vel")
    others = [Endpoint("rt/cmd_vel", route.dds_type, "in", DEFAULT, each) for each in demands]
    (trouble,) = troubles_of([route], others, {}, {"cmd_vel"}, {}, {}, "domain 7")
    assert trouble.text.startswith(f"/cmd_vel {text}")
