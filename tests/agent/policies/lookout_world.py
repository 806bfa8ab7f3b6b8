"""A robot whose agent looks out for somebody, and skills that begin other skills on the agent's behalf."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dimos_streams.agent.module import Agent
from dimos_streams.bridge.module import Bridge
from dimos_streams.module import Module, RunContext
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.skill import Call, skill
from dimos_streams.skills.look_out_for import LookOut
from dimos_streams.testing import FaultBus, Faults, ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView
from tests.agent.policies.brain import Brain
from tests.agent.policies.robot_stage import Robot
from tests.agent.stage import NoConfig
from tests.bridge.scene import closed
from tests.helpers import until
from tests.skills.detections import Camera, Seen


class Guard(Module):
    """Begins other skills in ways of its own, as a patrol that is written so would."""

    config: NoConfig

    @skill
    async def round(self, call: Call, skill: str, arguments: dict[str, Any], stubborn: bool = False) -> str:
        """Go round, and begin something, without any look beforehand whether it can be."""
        await call.update("going round")
        starting = asyncio.ensure_future(call.skills.start(skill, arguments))
        try:
            return f"began {await asyncio.shield(starting)}"
        except asyncio.CancelledError:
            if stubborn:
                await asyncio.gather(starting, return_exceptions=True)
                return "it has gone on all the same"
            starting.cancel()
            raise

    @skill
    async def part(self, call: Call, skill: str) -> str:
        """Wait, and begin something when that is cancelled."""
        await call.update("waiting")
        try:
            await asyncio.Event().wait()
        finally:
            await call.skills.start(skill, {})
        return "never"


class Late(Module):
    """Offers an operators' skill only later."""

    config: NoConfig

    @skill(audience="operator")
    async def salute(self) -> str:
        """Salute."""
        raise AssertionError("nobody may come here")


class Holder(Module):
    """Holds something."""

    config: NoConfig

    @skill(resources={"thing"}, motion=True)
    async def take(self, call: Call, seconds: float) -> str:
        """Hold it."""
        await call.update("holding it")
        await asyncio.sleep(seconds)
        return "let it go"

    @skill
    async def think(self, seconds: float) -> str:
        """Say nothing for a while."""
        await asyncio.sleep(seconds)
        return "thought"


class Undoable(Module):
    """Can be taken back."""

    config: NoConfig

    async def start(self) -> None:
        """See ``Module``."""
        self.x = 0.0

    @skill(motion=True, undo="go_back")
    async def go(self, by: float) -> str:
        """Go."""
        self.x += by
        return f"at {self.x:g}"

    @skill(audience="operator")
    async def go_back(self, arguments: dict[str, Any], result: Any = None) -> str:
        """Take it back."""
        self.x -= arguments["by"]
        return f"back at {self.x:g}"


@dataclass
class LookoutWorld:
    """A robot whose agent looks out for somebody, and what the test can do with it."""

    harness: ModuleHarness
    """The harness of the lookout."""
    hosts: dict[str, ModuleHost]
    """The host of each other module."""
    buses: dict[str, FaultBus]
    bridge: Bridge
    agent: Agent
    robot: Robot
    camera: Camera
    events: list[AgentEvent]

    def appear(self) -> None:
        """Somebody comes into view."""
        self.camera.view = [Seen()]

    async def add(self, module: Module) -> None:
        self.buses[module.name] = bus = FaultBus(self.harness.bus, Faults(), seed=len(self.buses))
        await bus.open()
        self.hosts[module.name] = host = ModuleHost(bus)
        await host.start(module, {name: f"/{name}" for name in module.streams()})

    async def kill_agent(self, brain: Brain, to: Path, **config: Any) -> None:
        """End the agent, of whose end nobody hears, and begin it anew in the directory ``to``, with what is recorded
        there, or was until now."""
        assert self.agent.context.run_dir is not None
        if not await asyncio.to_thread(to.exists):
            shutil.copytree(self.agent.context.run_dir, to)  # what it records of its end does not reach the next
        self.buses["agent"].partitioned = True
        self.agent.core.gateway.cancel = _nothing  # type: ignore[method-assign]
        await self.remove("agent")
        self.agent = Agent(config, name="agent", context=replace(self.agent.context, run_dir=to))
        await self.add(self.agent)
        self.agent.core.model.adapter = brain
        self.agent.core.events.listen(self.events.append)

    async def remove(self, name: str) -> None:
        await self.hosts.pop(name).stop()
        await self.buses.pop(name).close()

    async def call(self, skill: str, /, **arguments: Any) -> str:
        """A call of an operator; its id."""
        return await self.bridge.broker.call(skill, arguments, caller="operator")

    async def closed(self, call_id: str) -> CallView:
        return await closed(self.bridge.broker, call_id, 120)

    async def operator(self, skill: str, /, **arguments: Any) -> Any:
        """The result of an operator's skill."""
        view = await self.closed(await self.call(skill, **arguments))
        assert view.outcome is Outcome.COMPLETED, view
        return view.result

    async def say(self, text: str = "go") -> str:
        return await self.call("say", text=text)

    async def views(self, skill: str) -> list[CallView]:
        return [view for view in await self.bridge.broker.calls() if view.skill == skill]

    async def view(self, skill: str, condition: Callable[[CallView], object]) -> CallView:
        """The first call of a skill that fulfils a condition."""
        async with asyncio.timeout(30):
            while True:
                for view in await self.views(skill):
                    if condition(view):
                        return view
                await asyncio.sleep(0.02)

    async def lookout_closed(self, skill: str = "look_out_for") -> CallView:
        return await self.view(skill, lambda view: view.state == "closed")

    async def looking(self, skill: str = "look_out_for") -> CallView:
        return await self.view(skill, lambda view: view.answer)

    async def waiting(self) -> CallView:
        """The lookout, once it has said that what follows waits."""
        return await self.view("look_out_for", lambda view: "Waits until" in view.text)


async def _nothing(call_id: str, reason: str) -> None:
    """What becomes of a dead agent's orders."""


@contextlib.asynccontextmanager
async def lookout_world(
    brain: Brain, *more: Module, journal: Path | None = None, run_dir: Path | None = None, **config: Any
) -> AsyncIterator[LookoutWorld]:
    context = RunContext(run_dir=run_dir)
    async with ModuleHarness(LookOut(name="lookout")) as harness:
        robot, agent = Robot(name="robot"), Agent(config, name="agent", context=context)
        bridge = Bridge({"http": False, "journal": journal}, name="bridge", context=context)
        w = LookoutWorld(harness, {}, {}, bridge, agent, robot, Camera(harness), [])
        feeding = asyncio.create_task(w.camera.run())
        try:
            for module in (bridge, robot, Guard(name="guard"), *more, agent):
                await w.add(module)
            agent.core.model.adapter = brain
            agent.core.events.listen(w.events.append)
            names = {"look_out_for", "walk", "round", "say"}
            await until(lambda: names <= {info.name for _, info in bridge.broker.directory.skills()})
            yield w
        finally:
            feeding.cancel()
            for name in reversed(list(w.hosts)):
                await w.remove(name)
        assert harness.failed() is None


def lookout(then: str, **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
    """A model's call."""
    return [("look_out_for", {"descriptions": ["man in red"], "then": {"skill": then, "arguments": arguments}})]


def round_with(then: str, *, stubborn: bool = False, **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
    """The same by another skill that calls skills."""
    return [("round", {"skill": then, "arguments": arguments, "stubborn": stubborn})]
