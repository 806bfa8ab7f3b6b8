"""A robot of ROS with one action, in virtual time, and the server of the action, which does what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dimos_streams import clock
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.ros2.actions.skills import type_of
from dimos_streams.ros2.cdr import encode
from dimos_streams.ros2.config import ActionSetting
from dimos_streams.ros2.layout import struct_of
from dimos_streams.ros2.module import Ros2Robot
from dimos_streams.testing import ModuleHarness
from tests.helpers import until
from tests.ros2.fake_wire import FakeServer, FakeWire

GRIP = {
    "action": "arm/grip",
    "type": "arm_msgs/action/Grip",
    "definition": """
        # How far to close, 0 to 1.
        float32 width 0.5
        Force[] forces      # of each finger
        uint8 SOFT=1
        ---
        bool held
        string[] notes
        ---
        float32 width
        float64[3] place
    """,
    "types": {"arm_msgs/msg/Force": "float64 newton\nstd_msgs/Header header"},
    "moves": False,
    "limits": {"width": [0, 1], "forces.newton": [0, 20]},
    "description": "Close the gripper.",
}
NAVIGATE = {"navigate_to": {"action": "navigate_to_pose", "limits": {"x": [-5, 5], "y": [-5, 5]}}}


class World:
    """A robot of ROS, its harness, and what the robot's wire carries."""

    def __init__(self, harness: ModuleHarness, wire: FakeWire, server: FakeServer) -> None:
        self.harness, self.wire, self.server = harness, wire, server
        self.sees = True

    async def see(self) -> None:
        """Odometry, for ever."""
        while True:
            if self.sees:
                self.wire.deliver("rt/odom", encode(struct_of(Odometry), Odometry()))
            await asyncio.sleep(0.1)

    def hold(self, *, on: bool) -> None:
        message = Hold(source="agent", hold=on, valid_s=60.0, utime=clock.utime())
        self.harness.feed("hold", message)

    async def health(self, part: str) -> None:
        await until(lambda: part in self.harness.module.health, 30.0)


@asynccontextmanager
async def world(actions: dict[str, Any] = NAVIGATE, **topics: str) -> AsyncIterator[World]:
    twist = "geometry_msgs::msg::dds_::Twist_"
    wire = FakeWire({"rt/odom": "nav_msgs::msg::dds_::Odometry_", "rt/cmd_vel_nav": twist})
    ((_, row),) = actions.items()
    setting = ActionSetting.model_validate(row)
    server = FakeServer(wire, f"/{setting.action}", type_of(setting))

    class Robot(Ros2Robot):
        def wire(self) -> FakeWire:
            return wire

    table = {"odom": "odom", "nav_vel": "cmd_vel_nav", **topics}
    async with ModuleHarness(Robot, {"topics": table, "actions": actions}) as harness:
        made = World(harness, wire, server)
        seeing = asyncio.create_task(made.see())
        await until(lambda: harness.sent("odom"))
        yield made
        seeing.cancel()


def nav_feedback(left: float) -> dict[str, Any]:
    zero = {"sec": 0, "nanosec": 0}
    point = {"x": 0.0, "y": 0.0, "z": 0.0}
    pose = {"position": point, "orientation": {**point, "w": 1.0}}
    return {
        "current_pose": {"header": {"stamp": zero, "frame_id": "map"}, "pose": pose},
        "navigation_time": zero,
        "estimated_time_remaining": {"sec": 4, "nanosec": 0},
        "number_of_recoveries": 0,
        "distance_remaining": left,
    }
