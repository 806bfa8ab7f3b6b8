"""What is said of topics that come and are of little use, in virtual time."""

from __future__ import annotations

import pytest

from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.messages.std_msgs import Header
from dimos_streams.ros2.cdr import encode
from dimos_streams.ros2.layout import struct_of
from tests.ros2.action_world import world

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("G4")]


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
async def test_only_a_frame_other_than_the_bases_is_warned_of(
    frames: list[str], lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(scan="scan") as at:
        for frame in frames:
            at.wire.deliver("rt/scan", encode(struct_of(LaserScan), LaserScan(header=Header(frame_id=frame))))
        assert caplog.text.count("is taken for ahead") == lines
        assert "frame 'base_link'" not in caplog.text
