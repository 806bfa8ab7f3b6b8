"""With a robot whose types say what they consist of."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from dimos_streams.messages.image import array_from_image
from dimos_streams.ros2 import module as ros2_module
from dimos_streams.ros2.module import Ros2Robot
from dimos_streams.testing import ModuleHarness
from tests.helpers import until
from tests.ros2.fast_dds import OwnDomain
from tests.ros2.test_topics_live import driven

pytestmark = [pytest.mark.live, pytest.mark.feature("G4")]
PROGRAM = Path(__file__).with_name("typed_robot.py")


def test_types_that_say_what_they_consist_of_match_and_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cyclonedds", reason="the extra `ros2` is not installed")
    monkeypatch.setattr(ros2_module, "GRACE_S", 0.0)
    monkeypatch.setattr(ros2_module, "WATCH_S", 0.1)
    domain = OwnDomain()
    topics = {"odom": "odom", "cmd_vel": "cmd_vel", "scan": "scan"}
    image = {"topic": "image", "type": "sensor_msgs/msg/Image"}
    config = {"domain_id": domain.number, "topics": topics | {"color_image": image}}

    async def scenario(robot: subprocess.Popen[str]) -> None:
        assert robot.stdout is not None
        async with ModuleHarness(Ros2Robot, config) as harness, driven(harness):
            await until(lambda: harness.sent("odom") and harness.sent("color_image"))
            assert array_from_image(harness.sent("color_image")[-1]).shape == (1, 2, 3)
            assert await asyncio.to_thread(robot.stdout.readline) == "moved\n"
            await until(lambda: harness.module.health.startswith("/scan is there, but does not match: "))

    command = [sys.executable, str(PROGRAM), str(domain.number)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as robot:
        try:
            asyncio.run(scenario(robot))
        finally:
            robot.kill()
            domain.close()
