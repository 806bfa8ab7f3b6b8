"""The simulated robot around a skill module: room, velocity gate and detector on the harness's bus, as live."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dimos_streams.module import Module
from dimos_streams.perception.module import PersonDetector
from dimos_streams.robot.simulation.mjcf import BASE_RADIUS
from dimos_streams.robot.simulation.world import TICK_S
from dimos_streams.robot.simulator import Simulator
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.testing import ModuleHarness

BASE = "/base_vel"
"""The topic of what passes the gate. The skill's command is on the harness's own topic, /cmd_vel."""


@dataclass
class Room:
    """A skill module under test, and the robot that it moves."""

    harness: ModuleHarness
    simulator: Simulator

    def distance(self, person: str) -> float:
        """Metres between the robot and a person, in truth."""
        pose, stance = self.simulator.world.pose(), self.simulator.world.walkers[person].stance
        return math.dist((pose.x, pose.y), (stance.x, stance.y))

    def clearance(self) -> float:
        """Metres between the hull and whatever is nearest, in truth."""
        return float(self.simulator.lidar.scan(self.simulator.world).min()) - BASE_RADIUS

    def is_still(self) -> bool:
        """Whether the base neither drives nor turns."""
        motion = self.simulator.world.twist()
        return math.hypot(motion.vx, motion.vy) < 0.01 and abs(motion.wz) < 0.01

    async def until(self, condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
        """Wait for something to become true. Raises ``TimeoutError``."""
        async with asyncio.timeout(timeout_s):
            while not condition():  # noqa: ASYNC110 - the world has no events for this
                await asyncio.sleep(TICK_S)


@contextlib.asynccontextmanager
async def room_with(
    module: type[Module], config: Mapping[str, Any] | None = None, /, **simulated: Any
) -> AsyncIterator[Room]:
    """Run a module on the simulated robot. ``simulated`` is the simulator's config."""
    async with ModuleHarness(module, config) as harness:
        robot = ModuleHost(harness.bus)
        simulator = Simulator({"camera_width": 160, "camera_height": 120, **simulated}, name="robot")
        await _start(robot, simulator, cmd_vel=BASE)
        await _start(robot, VelocityGate(name="gate"), cmd_vel=BASE, skill_vel="/cmd_vel")
        detector = PersonDetector({"backend": "segmentation"}, name="detector")
        await _start(robot, detector, color_image=None)
        try:
            yield Room(harness, simulator)
        finally:
            await robot.stop()


async def _start(host: ModuleHost, module: Module, **topics: str | None) -> None:
    """Streams have the topics of their names, but for the given ones; None leaves one unwired."""
    wiring = {name: topics.get(name, f"/{name}") for name in module.streams()}
    await host.start(module, {name: topic for name, topic in wiring.items() if topic is not None})
