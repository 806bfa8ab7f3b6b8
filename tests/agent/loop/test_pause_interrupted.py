"""A pause that is interrupted to take calls back: it is the operator's all the time, also if the agent dies then."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.control.control import Control, Mode
from dimos_streams.agent.control.undo_log import UndoEntry
from dimos_streams.agent.control.undo_pause import UndoPause
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.record.agent_events import EventLog
from dimos_streams.operator.messages.agent import AgentEvent, WaitingCall
from dimos_streams.tool_stream.gateway import CallView, OfferedSkill
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until

Command = Callable[[AgentInMemory], Any]
COMMANDS: dict[str, Command] = {
    "undo": lambda agent: agent.core.loop.undo(2),
    "rollback": lambda agent: agent.core.loop.abort(rollback=True),
}


async def paused_after_two_moves(agent: AgentInMemory, world: LineWorld, *, follows: bool) -> None:
    """The mission goes on, so that there is something to abort, or it is over."""
    mission = await agent.say("go")
    await until(
        lambda: mission.over if not follows else [call.skill for call in agent.core.calls.known.open] == ["follow"]
    )
    assert world.log == ["move 1", "move 2"]
    agent.core.control.pause("hands off")


@pytest.mark.feature("B3", "B5", "B10")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.virtual_time
async def test_killed_at_any_event_of_it_the_pause_holds(tmp_path: Path, command: str) -> None:
    world, record = LineWorld(), tmp_path / "record"
    moves = ("move", {"by": 1}), ("move", {"by": 2})
    follow: list[tuple[str, dict[str, Any]]] = [("follow", {})] if command == "rollback" else []
    kills: list[Path] = []

    def kill(event: AgentEvent) -> None:
        kills.append(shutil.copytree(record, tmp_path / f"killed-{event.number}"))

    async with world.with_model(FunctionModel(in_turn(asks(*moves, *follow), says("done"))), record) as agent:
        await paused_after_two_moves(agent, world, follows=bool(follow))
        end = agent.core.events.listen(kill)
        held: list[bool] = []
        agent.core.events.listen(lambda event: held.append(agent.core.holding) if event.kind == "undo" else None)
        await COMMANDS[command](agent)
        end()
        assert not all(held), "the robot was let go"
        assert agent.core.control.mode is Mode.PAUSED
        assert agent.core.holding
    assert world.log[-2:] == ["back 2", "back 1"]
    assert len(kills) > 6
    for folder in kills:
        async with LineWorld().with_model(FunctionModel(in_turn(says("go on"))), folder) as second:
            assert second.core.control.mode is Mode.PAUSED, folder.name
            assert second.core.holding, folder.name


@pytest.mark.feature("B3", "B5")
@pytest.mark.virtual_time
async def test_meanwhile_only_what_a_call_asks_for_begins() -> None:
    control = Control(EventLog("a").emit)
    control.pause()
    own, asked = WaitingCall(skill="move", arguments={}), WaitingCall(skill="move", arguments={}, parent="c1")
    assert [control.may_begin(call, None) for call in (own, asked)] == [False, False]
    with control.interrupted("it is taken back"):
        assert [control.may_begin(call, None) for call in (own, asked)] == [False, True]
    assert [control.may_begin(call, None) for call in (own, asked)] == [False, False]


@pytest.mark.feature("B3", "B5")
@pytest.mark.parametrize("needs_motion", [True, False])
@pytest.mark.virtual_time
async def test_time_stands_still_for_what_the_agent_itself_holds(needs_motion: bool) -> None:
    events = EventLog("a")
    control = Control(events.emit)
    pause = UndoPause(control, events.emit, lambda entry: needs_motion)
    entry = UndoEntry(call_id="c1", skill="move", arguments={})
    assert not pause.stops_time(entry)
    control.pause("calls of others may still run", ordered=False)
    assert (pause.came_meanwhile, pause.stops_time(entry)) == (False, needs_motion)
    control.resume()
    control.pause("hands off")
    assert (pause.came_meanwhile, pause.stops_time(entry)) == (True, True)


@pytest.mark.feature("B3", "B5")
@pytest.mark.virtual_time
async def test_a_resume_while_the_bridge_is_asked_what_runs_is_no_pause_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1})), says("done")) as agent:
        await agent.over(await agent.say("go"))
        control, calls, looks = agent.core.control, world.bridge.calls, list[Mode]()
        control.pause()

        async def and_resume(**options: bool) -> list[CallView]:
            looks.append(control.mode)
            if len(looks) == 2:  # the first one is before the undo begins
                control.resume()
            return await calls(**options)

        monkeypatch.setattr(world.bridge, "calls", and_resume)
        await agent.core.loop.undo()
        assert (world.log, control.mode) == (["move 1", "back 1"], Mode.RUNNING)
        assert looks == [Mode.PAUSED, Mode.PAUSED]


@pytest.mark.feature("B3", "B5")
@pytest.mark.virtual_time
async def test_nothing_is_a_resume_that_the_operator_has_not_said(tmp_path: Path) -> None:
    world = LineWorld()
    async with world.with_model(FunctionModel(in_turn(asks(("move", {"by": 1})), says("done"))), tmp_path) as agent:
        await agent.over(await agent.say("go"))
        agent.core.control.pause("wet floor")
        waiting = await agent.say("go on")
        undoing = asyncio.ensure_future(agent.core.loop.undo())
        await until(lambda: world.log[-1] == "back 1")
        assert (agent.core.control.mode, agent.core.holding) == (Mode.PAUSED, False)
        await undoing
        await asyncio.sleep(10)
        assert agent.core.holding
        assert "resume" not in agent.kinds()
        assert agent.data("pause")[-1]["reason"] == "as before calls were taken back; wet floor", (
            "a successor reads it"
        )
        assert not waiting.over, "what waits for the operator goes on waiting"


@pytest.mark.feature("B3", "B5")
@pytest.mark.parametrize(
    ("said", "mode"), [("pause", Mode.PAUSED), ("resume", Mode.RUNNING), ("step", Mode.STEPPING)]
)
@pytest.mark.virtual_time
async def test_what_the_operator_says_meanwhile_counts(said: str, mode: Mode) -> None:
    world = LineWorld()
    moves = ("move", {"by": 1}), ("move", {"by": 2})
    async with world.agent(asks(*moves), says("done")) as agent:
        await paused_after_two_moves(agent, world, follows=False)
        undoing = asyncio.ensure_future(agent.core.loop.undo(2))
        await until(lambda: world.log[-1] == "back 2")
        control = agent.core.control
        assert {"pause": control.pause, "resume": control.resume, "step": control.step_mode}[said]()
        assert agent.core.holding is (said == "pause")
        if said == "pause":
            await asyncio.sleep(300)
            assert world.log[-1] == "back 2"
            assert not undoing.done()
            assert (control.mode, agent.core.holding) == (Mode.PAUSED, True)
            control.step_mode()
        assert [undone.how for undone in await undoing] == ["undone", "undone"]
        assert control.mode is (Mode.STEPPING if said == "pause" else mode)
        assert not agent.core.holding


@pytest.mark.feature("B3", "B5")
@pytest.mark.virtual_time
async def test_what_needs_no_motion_waits_for_the_end_of_a_pause_that_comes_meanwhile() -> None:
    world = LineWorld()
    async with world.agent(asks(("note", {"n": 1}), ("note", {"n": 2}), ("note", {"n": 3})), says("done")) as agent:
        await agent.over(await agent.say("go"))
        agent.core.control.pause()  # the operator knows that, and what is asked for now is not held up by it
        undoing = asyncio.ensure_future(agent.core.loop.undo(3))
        await until(lambda: world.log[-1] == "strike 2")
        agent.core.control.pause("wait")
        await asyncio.sleep(300)
        assert world.log[-1] == "strike 2"
        assert not undoing.done()
        agent.core.control.resume()
        assert [undone.how for undone in await undoing] == ["undone"] * 3
        assert world.log[-3:] == ["strike 3", "strike 2", "strike 1"]


@pytest.mark.feature("B3", "B5")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.virtual_time
async def test_a_pause_before_the_first_call_is_taken_back_is_not_interrupted(command: str) -> None:
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1}), ("move", {"by": 2})), asks(("hang", {}))) as agent:
        await agent.say("go")
        await until(lambda: [call.skill for call in agent.core.calls.known.open] == ["hang"])
        if command == "undo":
            await agent.core.loop.abort()
        offered = world.bridge.skills

        async def slowly() -> list[OfferedSkill]:
            await asyncio.sleep(1 if agent.core.loop.state is LoopState.UNDOING else 0)
            return await offered()

        world.bridge.skills = slowly  # type: ignore[method-assign]
        undoing = asyncio.ensure_future(COMMANDS[command](agent))
        await until(lambda: agent.core.loop.state is LoopState.UNDOING)
        agent.core.control.pause("hands off")
        await asyncio.sleep(100)
        assert world.log == ["move 1", "move 2"]
        assert agent.core.holding
        agent.core.control.resume()
        await undoing
        assert world.log == ["move 1", "move 2", "back 2"] + ["back 1"] * (command == "rollback")


@pytest.mark.feature("B3", "B5")
@pytest.mark.virtual_time
async def test_an_abort_ends_an_undo_that_waits_and_leaves_what_was_not_begun() -> None:
    world = LineWorld()
    async with world.agent(asks(("note", {"n": 1}), ("note", {"n": 2})), says("done")) as agent:
        await agent.over(await agent.say("go"))
        undoing = asyncio.ensure_future(agent.core.loop.undo(2))
        await until(lambda: world.log[-1] == "strike 2")
        agent.core.control.pause()
        await asyncio.sleep(5)
        await agent.core.loop.abort()
        assert [undone.arguments for undone in await undoing] == [{"n": 2}]
        assert [(undone.arguments, undone.how) for undone in await agent.core.loop.undo(2)] == [({"n": 1}, "undone")]


@pytest.mark.feature("B3", "B5")
@pytest.mark.virtual_time
async def test_only_what_a_call_asks_for_begins_meanwhile() -> None:
    control = Control(EventLog("agent").emit)
    control.pause()
    own, other = asyncio.create_task(control.permit("look", {}).wait()), asyncio.create_task(control.unpaused())
    with control.interrupted("calls are taken back"):
        late = asyncio.create_task(control.permit("look", {}).wait())
        permit = control.permit("look", {}, parent="c7")
        async with asyncio.timeout(1):
            await permit.wait()
        assert permit.holds
        assert not control.may_begin_turn()
    assert not permit.holds
    child = asyncio.create_task(control.permit("look", {}, parent="c7").wait())
    await asyncio.sleep(1)
    assert not any(task.done() for task in (own, other, late, child))
    control.resume()
    await asyncio.gather(own, other, late, child)
