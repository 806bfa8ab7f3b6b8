"""An undo that interrupts a pause moves the robot alone: nobody else's motion goes on or begins beside it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.module import Agent
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.module import Bridge
from dimos_streams.errors import CallRejectedError, SkillError, SkillUnavailableError
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.module import Module, ModuleConfig, RunContext
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.gateway import CallView, SkillGateway
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Line
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.agent.stage import calling, script
from tests.helpers import until

pytestmark = [pytest.mark.feature("B3", "B5"), pytest.mark.virtual_time]


class NoConfig(ModuleConfig):
    """Nothing to set."""


class Cart(Module):
    """Drives ahead and back, without a lease."""

    config: NoConfig
    skill_vel: Out[Twist]

    @skill(motion=True, undo="retreat")
    async def advance(self) -> str:
        """Drive ahead for a second."""
        await self._drive(0.2, 1.0)
        return "ahead"

    @skill(motion=True, audience="operator")
    async def retreat(self, call: Call, arguments: dict[str, Any], result: Any = None) -> str:
        """Drive back for two seconds, and nod."""
        await self._drive(-0.2, 2.0)
        await call.skills.run("nod")
        return "back"

    @skill(motion=True)
    async def nod(self) -> str:
        """Move a little."""
        return "nodded"

    @skill(motion=True)
    async def drift(self, call: Call) -> str:
        """Drive ahead until it is ended."""
        await call.update("drifting")
        await self._drive(0.1, 1000.0)
        return "drifted"

    @skill
    async def sing(self, call: Call) -> str:
        """Sing until it is ended."""
        await call.update("la")
        await asyncio.sleep(1000.0)
        return "sung"

    async def _drive(self, speed: float, for_s: float) -> None:
        for _ in range(round(for_s / 0.05)):
            self.skill_vel.publish(Twist(linear=Vector3(x=speed)))
            await asyncio.sleep(0.05)


@dataclass
class Scene:
    """A cart that has advanced once at its agent's order, its gate, a bridge and somebody else."""

    harness: ModuleHarness
    agent: Agent
    gateway: SkillGateway

    async def begin(self, skill_name: str, **arguments: Any) -> str:
        return await self.gateway.call(skill_name, arguments, caller="somebody")

    async def view(self, call_id: str) -> CallView:
        assert isinstance(self.gateway, Broker)
        return await self.gateway.view(call_id)

    async def ended(self, call_id: str) -> CallView:
        assert isinstance(self.gateway, Broker)
        assert await self.gateway.wait(call_id, "close", 100.0)
        return await self.view(call_id)

    async def ordered(self, skill_name: str, **arguments: Any) -> CallView:
        return await self.ended(await self.begin(skill_name, **arguments))

    def speeds(self) -> list[float]:
        return [twist.linear.x for twist in self.harness.sent("cmd_vel")]


@contextlib.asynccontextmanager
async def scene(folder: Path, *turns: dict[str, Any]) -> AsyncIterator[Scene]:
    context = RunContext()
    async with ModuleHarness(Bridge({"http": False}, name="bridge", context=context)) as harness:
        await harness.add(Cart(name="cart", context=context))
        await harness.add(VelocityGate(name="gate", context=context), unwired=("scan",))
        config = {"plan": {"motions": None}, **script(folder / "turns", calling("advance"), *turns)}
        agent = Agent(config, name="agent", context=context)
        await harness.add(agent)
        gateway = context.services.get(SkillGateway)  # type: ignore[type-abstract]
        assert gateway is not None
        made = Scene(harness, agent, gateway)
        while len({skill.module for skill in await gateway.skills()}) < 2:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)
        said = await made.begin("say", text="go")
        if turns:
            await until(lambda: [call.skill for call in agent.core.calls.known.open] == ["sing"])
            await until(lambda: agent.core.loop.state is LoopState.IDLE)
        else:
            await made.ended(said)
        assert max(made.speeds()) == pytest.approx(0.2)
        assert agent.core.loop.state is LoopState.IDLE
        yield made
        assert harness.failed() is None


async def test_a_motion_of_somebody_else_that_a_pause_holds_does_not_go_on_for_an_undo(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        await made.begin("sing")
        drift = await made.begin("drift")
        await made.ordered("pause")
        count = len(made.speeds())
        undo = await made.ordered("undo")
        assert undo.outcome == "failed"
        assert f"drift (call {drift} of 'somebody') would go on as well; `resume` first, or end them" in undo.text
        assert set(made.speeds()[count:]) <= {0.0}
        await made.gateway.cancel(drift, "enough")
        await made.ended(drift)
        assert (await made.ordered("undo")).text.endswith("undone: back")
        assert min(made.speeds()) == pytest.approx(-0.2)


@pytest.mark.parametrize("order", ["undo", "rollback"])
async def test_no_motion_of_somebody_else_begins_beside_an_undo(order: str, tmp_path: Path) -> None:
    more = [calling("sing")] if order == "rollback" else []  # then the mission goes on, and can be aborted
    async with scene(tmp_path, *more) as made:
        await made.ordered("pause")
        count = len(made.speeds())
        undo = await (made.begin("undo") if order == "undo" else made.begin("abort", rollback=True))
        while (await made.view(undo)).state != "closed":
            with pytest.raises(CallRejectedError, match="agent 'agent' takes calls back") as refused:
                await made.begin("drift")
            assert refused.value.holder == undo
            await asyncio.sleep(0.02)
        assert "undone: back" in (await made.view(undo)).text
        await made.begin("drift")
        await asyncio.sleep(2.0)
        after = made.speeds()[count:]
        assert min(after) == pytest.approx(-0.2)
        assert max(after) == 0.0
        await made.ordered("resume")
        await until(lambda: made.speeds()[-1] > 0.0)


async def test_an_undo_whose_call_is_ended_lets_the_robot_go_no_longer(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        await made.ordered("pause")
        undo = await made.begin("undo")
        await until(lambda: made.speeds()[-1] < 0.0)
        await made.gateway.cancel(undo, "never mind")
        await made.ended(undo)
        core, count = made.agent.core, len(made.speeds())
        assert (core.control.mode, core.holding) == (Mode.PAUSED, True)
        await made.begin("drift")
        await asyncio.sleep(5.0)
        assert max(made.speeds()[count:]) == 0.0
        assert made.speeds()[-1] == 0.0
        await made.ordered("resume")
        await until(lambda: core.loop.state is LoopState.IDLE)


@dataclass(eq=False)
class DeafLine(Line):
    """A link over which open calls can't be listed from some moment on."""

    deaf: bool = False

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        if self.deaf:
            raise SkillUnavailableError("no bridge for calls")
        return await super().calls(open_only=open_only)


@contextlib.asynccontextmanager
async def moved_and_paused(*more: str) -> AsyncIterator[tuple[AgentInMemory, LineWorld, DeafLine]]:
    world = LineWorld()
    line = DeafLine(world.bridge)
    model = FunctionModel(in_turn(asks(("move", {"by": 1}), *((name, {}) for name in more)), says("done")))
    async with AgentInMemory(world.bridge, model, {"plan": {"motions": None}}, line=line) as agent:
        await agent.say("go")
        await until(lambda: agent.core.loop.state is LoopState.IDLE and world.log[-1:] == ["move 1"])
        agent.core.control.pause()
        yield agent, world, line
        world.released.set()


async def test_an_undo_is_refused_while_it_is_not_known_what_else_moves() -> None:
    async with moved_and_paused() as (agent, _, line):
        line.deaf = True
        with pytest.raises(SkillError, match="no bridge for calls"):
            await agent.core.loop.undo(1)
        line.deaf = False
        assert [undone.how for undone in await agent.core.loop.undo(1)] == ["undone"]


@pytest.mark.parametrize("deaf", [False, True], ids=["somebody moves", "not known"])
async def test_a_rollback_moves_nothing_while_something_else_may_move(deaf: bool) -> None:
    async with moved_and_paused("follow") as (agent, world, line):
        if not deaf:
            await world.bridge.call("hang", {}, caller="somebody")
        line.deaf = deaf
        report = await agent.core.loop.abort(rollback=True)
        assert [(each.skill, each.text) for each in report.undone][-1] == (
            "move",
            "it needs motion, and the robot is held still",
        )
        assert world.log == ["move 1", "follow ended"]
        assert agent.core.holding


@pytest.mark.parametrize(("skill_name", "is_in_the_way"), [("slow", True), ("look", False), ("follow", False)])
async def test_what_does_not_move_the_robot_is_in_no_undo_s_way(skill_name: str, is_in_the_way: bool) -> None:
    async with moved_and_paused() as (agent, world, _):
        await world.bridge.call(skill_name, {"for_s": 1000}, caller="somebody")
        if is_in_the_way:
            with pytest.raises(SkillError, match="would go on as well"):
                await agent.core.loop.undo(1)
        else:
            assert [undone.how for undone in await agent.core.loop.undo(1)] == ["undone"]
