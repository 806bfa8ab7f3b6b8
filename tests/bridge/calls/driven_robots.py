"""Robots that an operator stops and releases: legs that obey, legs that do not, and what commands them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from dimos_streams import clock
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.module import Module, ModuleConfig, RunContext, Services
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from tests.bridge.scene import Scene, Worker, scene
from tests.helpers import until

FORWARD = Twist(linear=Vector3(x=0.5))


class StubbornConfig(ModuleConfig):
    """Nothing to set."""


class Stubborn(Module):
    """An arm whose skill does not end when it is asked to."""

    config: StubbornConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.enough = asyncio.Event()

    @skill(motion=True)
    async def wave(self, call: Call) -> None:
        """Wave until it is enough."""
        await call.update("waving")
        begun = clock.monotonic()
        while not self.enough.is_set() and clock.monotonic() - begun < 30.0:
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(self.enough.wait(), 30.0)


class Sleepwalker(Stubborn):
    """Legs that go on and on, whoever asks them to end."""

    cmd_vel: Out[Twist]

    @skill(motion=True)
    async def walk(self, call: Call) -> None:
        """Walk until it is enough."""
        await call.update("walking")
        while not self.enough.is_set():
            self.cmd_vel.publish(FORWARD)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)


class Gripper(Module):
    """A gripper whose author does not call its skill a motion."""

    config: StubbornConfig

    @skill(resources={"gripper"})
    async def hold_tight(self, call: Call) -> None:
        """Hold something until told otherwise."""
        await call.update("holding")
        await asyncio.Event().wait()


class Watcher(Module):
    """Waits for something, and has the gripper hold it then."""

    config: StubbornConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen = asyncio.Event()

    @skill
    async def watch(self, call: Call) -> str:
        """Watch until something is seen."""
        await call.update("watching")
        await self.seen.wait()
        return await call.skills.start("robot1_hold_tight", {})


def of(robot: str, name: str) -> dict[str, Any]:
    """The arguments of a module of a robot."""
    return {"name": f"{robot}/{name}", "context": RunContext(services=Services(), namespace=f"{robot}/")}


class DrivenRobots:
    """Robots with a worker and a velocity gate each, whose skills and joysticks command all the time."""

    def __init__(self, world: Scene) -> None:
        self.world = world
        self.passed: dict[str, float] = {}
        """The newest forward speed that each robot's gate has let pass, m/s."""

    async def add(self, robot: str, **wired: str | None) -> None:
        """``wired`` has the topics that are others than usual, and None for inputs without one."""
        usual = {name: f"/{robot}/{name}" for name in ("skill_vel", "teleop_vel", "hold", "cmd_vel")}
        topics = {name: topic for name, topic in (usual | wired).items() if topic is not None}
        process = await self.world.add()
        for module, wiring in ((VelocityGate(name=f"{robot}/gate"), topics), (Worker(**of(robot, "worker")), {})):
            await process.host.start(module, wiring)
            process.modules[module.name] = module
        channel = channel_name(topics["cmd_vel"], Twist)

        def keep(channel: str, data: bytes) -> None:
            self.passed[robot] = decode(Twist, data, channel=channel).linear.x

        self.world.inner.subscribe(channel, keep)
        await self.world.offered(f"{robot}_follow")

    async def drive(self, *topics: str) -> None:
        while True:
            for topic in topics:
                self.world.inner.publish(channel_name(topic, Twist), encode(FORWARD))
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def driven_robots(
    *robots: str, journal: Path | None = None, hold: str | None = None
) -> AsyncIterator[DrivenRobots]:
    """``hold`` is the topic on which their gates listen to holds; None is for the usual ones."""
    config: dict[str, Any] = {"journal": journal} if journal else {}
    async with scene(worker=False, **config) as world:
        made = DrivenRobots(world)
        for robot in robots:
            await made.add(robot, **({"hold": hold} if hold else {}))
        topics = [f"/{robot}/skill_vel" for robot in robots]
        driving = asyncio.create_task(made.drive(*topics))
        await until(lambda: all(made.passed.get(robot, 0.0) > 0.3 for robot in robots))
        try:
            yield made
        finally:
            driving.cancel()
            await asyncio.wait([driving])
