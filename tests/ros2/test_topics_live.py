"""Topics both ways, with a robot that shares no code with the package."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.image import array_from_image
from dimos_streams.ros2 import module as ros2_module
from dimos_streams.ros2.module import Ros2Robot
from dimos_streams.testing import ModuleHarness
from tests.helpers import until
from tests.ros2.conftest import PICTURE
from tests.ros2.fast_dds import FastDdsRobot

pytestmark = [pytest.mark.live, pytest.mark.feature("G4")]

TOPICS: dict[str, Any] = {
    "odom": "odom",
    "scan": "scan",
    "tf": "/tf",
    "cmd_vel": "cmd_vel",
    "color_image": "camera/image_raw/compressed",
}
AHEAD = Twist(linear=Vector3(x=0.4))


@pytest.fixture(autouse=True)
def _reports_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ros2_module, "GRACE_S", 0.0)
    monkeypatch.setattr(ros2_module, "WATCH_S", 0.1)


@asynccontextmanager
async def harnessed(robot: FastDdsRobot, **topics: Any) -> AsyncIterator[ModuleHarness]:
    config = {"domain_id": robot.domain, "topics": TOPICS | topics}
    async with ModuleHarness(Ros2Robot, config) as harness:
        yield harness


@asynccontextmanager
async def driven(harness: ModuleHarness) -> AsyncIterator[None]:
    """Velocities come as the gate sends them."""

    async def drive() -> None:
        while True:
            harness.feed("cmd_vel", AHEAD)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(drive())
    try:
        yield
    finally:
        task.cancel()


async def moves(robot: FastDdsRobot) -> None:
    await until(lambda: robot.state().vx == 0.4)


async def stands(robot: FastDdsRobot) -> None:
    await until(lambda: robot.state().still)


def run(scenario: Callable[[], Any]) -> None:
    asyncio.run(scenario())


def test_a_robot_is_sensed_and_driven_and_stands_when_nobody_commands(robot: FastDdsRobot) -> None:
    async def scenario() -> None:
        async with harnessed(robot) as harness:
            await until(lambda: all(harness.sent(name) for name in ("odom", "scan", "tf", "color_image")))
            picture = array_from_image(harness.sent("color_image")[-1])
            assert picture.shape == (*PICTURE, 3)
            assert tuple(int(value) for value in picture[0, 0]) == pytest.approx((200, 30, 30), abs=8)
            scan = harness.sent("scan")[-1]
            assert len(scan.ranges) == 360
            assert scan.ranges[180] == pytest.approx(8.0 - robot.state().x, abs=0.01)
            async with driven(harness):
                await moves(robot)
                await until(lambda: harness.sent("odom")[-1].twist.twist.linear.x == 0.4)
                assert harness.sent("tf")[-1].transforms[0].child_frame_id == "base_link"
            before = robot.state().commands
            await stands(robot)
            await until(lambda: robot.state().commands > before)  # zeros of ours, also where its watchdog was sooner
            await until(lambda: harness.module.health == "ok")

    run(scenario)


def test_a_robot_whose_odometry_is_gone_stands_until_it_is_back(robot: FastDdsRobot) -> None:
    async def scenario() -> None:
        async with harnessed(robot) as harness, driven(harness):
            await moves(robot)
            robot.command("mute")
            await stands(robot)
            await until(lambda: harness.module.health.startswith("/odom has not said anything for"))
            robot.command("unmute")
            await moves(robot)
            robot.command("break")  # what comes now can't be decoded
            await stands(robot)
            robot.command("mend")
            await moves(robot)
            await until(lambda: harness.module.health == "ok")

    run(scenario)


def test_a_topic_of_another_type_or_quality_is_named_and_nothing_moves(robot: FastDdsRobot) -> None:
    async def scenario() -> None:
        wrong = {
            "odom": "pose",
            "scan": {"topic": "scan", "qos": "latched"},
            "cmd_vel": {"topic": "cmd_vel", "type": "geometry_msgs/msg/TwistStamped"},
            "color_image": "camera/nowhere",
        }
        lines = [
            "/pose is there, as geometry_msgs/msg/PoseStamped, not as nav_msgs/msg/Odometry: set topics.odom.type",
            "/scan is published best effort, but reliable, latched is asked for: set topics.scan.qos",
            "/cmd_vel is there, as geometry_msgs/msg/Twist, not as geometry_msgs/msg/TwistStamped: "
            "set topics.cmd_vel.type",
            "nobody publishes /camera/nowhere (sensor_msgs/msg/CompressedImage)",
        ]
        async with harnessed(robot, **wrong) as harness, driven(harness):
            await until(lambda: harness.module.health == "; ".join(lines))
            assert robot.state().still
            assert harness.failed() is None

    run(scenario)


def test_stamped_velocities_drive_as_well(robot: FastDdsRobot) -> None:
    async def scenario() -> None:
        stamped = {"topic": "cmd_vel_stamped", "type": "geometry_msgs/msg/TwistStamped"}
        async with harnessed(robot, cmd_vel=stamped) as harness, driven(harness):
            await moves(robot)
        await stands(robot)
        assert not math.isnan(robot.state().x)

    run(scenario)


def test_a_robot_that_vanishes_is_missed(robot_program: Path) -> None:
    robot = FastDdsRobot(robot_program)

    async def scenario() -> None:
        topics = {"odom": "odom", "cmd_vel": "cmd_vel"}
        # Long before DDS forgets who is silent, two to three seconds, so that a busy machine shows it as well.
        config = {"domain_id": robot.domain, "topics": topics, "needed_timeout_s": 0.3}
        async with ModuleHarness(Ros2Robot, config) as harness:
            await until(lambda: harness.module.health == "ok" and harness.sent("odom"))
            robot.vanish()
            await until(lambda: harness.module.health.startswith("/odom has not said anything for"))
            await until(lambda: harness.module.health.startswith(f"nobody is heard in DDS domain {robot.domain} on"))

    try:
        run(scenario)
    finally:
        robot.kill()
