"""A robot that does not obey its skills' cancellation, its gate, a bridge and an agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from dimos_streams.agent.module import Agent
from dimos_streams.bridge.module import Bridge
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.module import Module, RunContext
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from dimos_streams.testing import ModuleHarness
from tests.agent.stage import NoConfig
from tests.helpers import until

HOLDING = {"listens": True, "holds": ["robot1/agent"], "still": True}


class Robot(Module):
    """Drives, whatever it is asked."""

    config: NoConfig
    skill_vel: Out[Twist]

    async def start(self) -> None:
        self.released = asyncio.Event()

    @skill(motion=True, on_duplicate="replace")
    async def drive(self, call: Call) -> str:
        """Drive until the test ends it, and not when it is cancelled."""
        await call.update("driving")
        while not self.released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                self.skill_vel.publish(Twist(linear=Vector3(x=0.2)))
                await asyncio.sleep(0.05)
        return "arrived"

    @skill(concurrent=True)
    async def stare(self, call: Call) -> str:
        """Sense until the test ends it, and not when it is cancelled."""
        await call.update("staring")
        while not self.released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        return "seen"


@dataclass
class HoldStage:
    """A robot that does not obey its skills' cancellation, its gate, a bridge and an agent."""

    harness: ModuleHarness
    bridge: Bridge
    agent: Agent
    robot: Robot

    @property
    def speed(self) -> float:
        """The velocity that the gate has let pass last."""
        return float(self.harness.sent("cmd_vel")[-1].linear.x)

    async def until_it_drives(self) -> None:
        """Wait until the gate lets the robot drive."""
        await until(lambda: self.harness.sent("cmd_vel") and self.speed > 0.15)


@contextlib.asynccontextmanager
async def hold_stage(
    config: Mapping[str, Any] | None = None, *, gate: bool = True, unwired: tuple[str, ...] = ()
) -> AsyncIterator[HoldStage]:
    context = RunContext()
    bridge = Bridge({"http": False}, name="bridge", context=context)
    async with ModuleHarness(bridge) as harness:
        robot = Robot(name="robot", context=context)
        await harness.add(robot)
        if gate:
            await harness.add(VelocityGate(name="gate", context=context), unwired=("scan", *unwired))
        agent = Agent({"plan": {"motions": None}, **(config or {})}, name="agent", context=context)
        await harness.add(agent)
        yield HoldStage(harness, bridge, agent, robot)
        robot.released.set()
        assert harness.failed() is None
