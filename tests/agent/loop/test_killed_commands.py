"""The agent is killed in the midst of an abort, a stop or an undo: what was to end ends, nothing is done twice."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.record.read_record import read_missions
from dimos_streams.agent.resumption.reader import read_resumption
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Line
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import run_virtual, until

Order = Callable[[AgentInMemory], Any]
ORDERS: dict[str, Order] = {
    "abort": lambda agent: agent.core.loop.abort("enough"),
    "rollback": lambda agent: agent.core.loop.abort("enough", rollback=True),
    "stop": lambda agent: agent.core.operators.stop_order.carry_out("s1", "stop"),
}


class Scene:
    """Two missions that follow somebody, a call of the agent's that is of no mission, and one of somebody else."""

    def __init__(self, folder: Path) -> None:
        self.world = LineWorld()
        self.folder = folder
        self.line = Line(self.world.bridge)

    def agent(self, folder: str, line: Line | None = None) -> AgentInMemory:
        answers = asks(("move", {"by": 1}), ("follow", {})), says("I follow")
        model = FunctionModel(in_turn(*answers, *answers) if line else in_turn())
        config = {"plan": {"motions": None}}
        return AgentInMemory(self.world.bridge, model, config, record_dir=self.folder / folder, line=line)

    async def open_calls(self) -> list[tuple[str, str]]:
        return [(view.caller, view.skill) for view in await self.world.bridge.calls(open_only=True)]

    @contextlib.asynccontextmanager
    async def killed(self, order: Order, at: int) -> AsyncIterator[int]:
        """The number of the event of the order at which the process died, 0 if it had no more so many."""
        died_at = count = 0
        for caller, by in (("agent", 7), ("script", 8)):
            await self.world.bridge.call("look", {"for_s": 1000, "by": by}, caller=caller)
        first = self.agent("before", self.line)
        await first.__aenter__()

        def look(event: AgentEvent) -> None:
            nonlocal died_at, count
            count += 1
            if count == at:
                died_at = event.number
                shutil.copytree(self.folder / "before", self.folder / "after")
                self.line.cut()

        for open_calls in (2, 3):
            await first.say("go")
            while len(first.core.calls.known.open) < open_calls or first.core.loop.state is not LoopState.IDLE:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        first.core.events.listen(look)
        ordered = asyncio.ensure_future(order(first))
        while not died_at and not ordered.done():  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)
        yield died_at
        ordered.cancel()
        await asyncio.gather(ordered, return_exceptions=True)
        await first.leave()


@pytest.mark.slow
@pytest.mark.feature("B5", "B10")
@pytest.mark.parametrize("name", ORDERS)
def test_killed_at_any_event_of_an_order_to_end_all_ends(tmp_path: Path, name: str) -> None:
    async def killed(at: int) -> int:
        scene = Scene(tmp_path / str(at))
        async with scene.killed(ORDERS[name], at) as died_at:
            if died_at:
                async with scene.agent("after") as second:
                    backs = sum(line.startswith("back") for line in scene.world.log)
                    await asyncio.sleep(5)
                    await check(scene, second)
                    assert sum(line.startswith("back") for line in scene.world.log) == backs
        return died_at

    async def check(scene: Scene, second: AgentInMemory) -> None:
        assert await scene.open_calls() == ([] if name == "stop" else [("script", "look")])
        assert (second.core.loop.missions, second.core.loop.state) == ({}, LoopState.IDLE)
        assert second.model.requests == [], "the model is asked nothing about what is over"
        ends = [mission.done for mission in read_missions(scene.folder / "after") if mission.id != "s1"]
        assert [end.data["reason"] for end in ends if end] == ["aborted", "aborted"]
        resumption = read_resumption(scene.folder / "after", "agent")
        assert resumption is not None
        assert resumption.abort is None, "it is over once and for all"

    async def main() -> None:
        at = 1
        try:
            while await killed(at):
                at += 1
        except BaseException as error:
            error.add_note(f"killed at event {at} of the order")
            raise
        assert at > 8

    run_virtual(main())


@pytest.mark.feature("B5", "B10")
@pytest.mark.parametrize("joins", [False, True], ids=["a stop", "a stop while an abort is under way"])
@pytest.mark.virtual_time
async def test_the_order_to_end_others_calls_holds_however_often_its_agent_dies(tmp_path: Path, joins: bool) -> None:
    """Their call takes its time to end. The process dies twice before, each time when its own work is done."""
    world = LineWorld()
    bridge = world.bridge
    call_id = await bridge.call("deaf", {}, caller="script")

    def agent(folder: str, line: Line | None = None) -> AgentInMemory:
        model = FunctionModel(in_turn(), delay_s=lambda: 100.0)
        return AgentInMemory(bridge, model, record_dir=tmp_path / folder, line=line)

    async def dies(folder: str, successor: str, order: Order | None = None) -> None:
        line = Line(bridge)
        dying = await agent(folder, line).__aenter__()
        if order is not None and joins:
            await dying.say("go")
            await until(lambda: dying.core.loop.turn is not None)
            dying.core.loop.begin_abort("enough")
        ordered = asyncio.ensure_future(order(dying) if order is not None else asyncio.sleep(0))
        await asyncio.sleep(0.5)
        shutil.copytree(tmp_path / folder, tmp_path / successor)
        line.cut()
        ordered.cancel()
        await asyncio.gather(ordered, return_exceptions=True)
        await dying.leave()

    try:
        await dies("first", "second", ORDERS["stop"])
        bridge.calls_[call_id].reason = ""  # it has not heard of it
        await dies("second", "third")
        bridge.calls_[call_id].reason = ""
    finally:
        world.released.set()
    async with agent("third") as third:
        await asyncio.sleep(1)
        assert await bridge.calls(open_only=True) == []
        assert third.core.loop.state is LoopState.IDLE
        resumption = read_resumption(tmp_path / "third", "agent")
        assert resumption is not None
        assert resumption.abort is None


@pytest.mark.feature("B5", "B10")
@pytest.mark.virtual_time
async def test_what_a_dead_agent_was_taking_back_is_not_taken_back_twice(tmp_path: Path) -> None:
    world = LineWorld()
    line = Line(world.bridge)
    model = FunctionModel(in_turn(asks(("move", {"by": 1}), ("move", {"by": 2})), says("done")))
    first = AgentInMemory(world.bridge, model, {"plan": {"motions": None}}, record_dir=tmp_path / "before", line=line)
    await first.__aenter__()
    await first.over(await first.say("go"))
    undoing = asyncio.ensure_future(first.core.loop.undo(2))
    await until(lambda: world.log[-1] == "back 2")
    shutil.copytree(tmp_path / "before", tmp_path / "after")
    line.cut()
    async with world.with_model(FunctionModel(in_turn()), tmp_path / "after") as second:
        await asyncio.sleep(5)
        assert [(undone.how, undone.text[:23]) for undone in await second.core.loop.undo(2)] == [
            ("failed", "the agent was restarted"),
            ("undone", "done"),
        ]
        assert world.log == ["move 1", "move 2", "back 2", "back 1"]
        assert second.core.memory.undo_log.entries == ()
        undoing.cancel()
        await asyncio.gather(undoing, return_exceptions=True)
        await first.leave()


@pytest.mark.feature("B3", "B10")
@pytest.mark.virtual_time
async def test_a_model_that_is_not_there_any_more_keeps_no_agent_from_coming_back(tmp_path: Path) -> None:
    world, script = LineWorld(), tmp_path / "model.json"
    script.write_text('{"turns": []}')
    async with world.with_model(FunctionModel(in_turn()), tmp_path / "record") as first:
        first.core.model_switch.use(f"scripted:{script}")
    script.unlink()
    async with LineWorld().with_model(FunctionModel(in_turn()), tmp_path / "record") as second:
        assert second.core.control.mode is Mode.PAUSED
        assert "can't be asked any more: there is no model script file" in second.data("pause")[-1]["reason"]
