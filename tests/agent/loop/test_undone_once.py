"""What is taken back is taken back once, whatever comes in between, and what was not is still there."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Literal

import pytest

from dimos_streams import clock
from dimos_streams.agent.control.commands import UndoCommand
from dimos_streams.agent.control.reports import Undone
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.errors import (
    CallInDoubtError,
    NoAnswerError,
    SkillArgumentError,
    SkillError,
    SkillUnavailableError,
)
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import OfferedSkill
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until

pytestmark = [pytest.mark.feature("B5"), pytest.mark.virtual_time]

MOVES = asks(("move", {"by": 1}), ("move", {"by": 2}))
ABORTED = "taking it back was aborted; it is not known how far that came"
BEFORE = "aborted before it took anything back"


def outcomes(undone: list[Undone]) -> list[tuple[object, str, str]]:
    return [(each.arguments["by"], each.how, each.text) for each in undone]


async def moved(agent: AgentInMemory) -> None:
    await agent.over(await agent.say("go"))


async def taking_back(agent: AgentInMemory, world: LineWorld) -> asyncio.Task[list[Undone]]:
    """An undo in the midst of its first call."""
    undoing = asyncio.create_task(agent.core.loop.undo(2))
    await until(lambda: world.log[-1] == "back 2")
    return undoing


@pytest.mark.parametrize("rollback", [False, True])
async def test_what_an_abort_left_half_taken_back_is_not_begun_again(rollback: bool) -> None:
    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        undoing = await taking_back(agent, world)
        await agent.core.loop.abort(rollback=rollback)
        assert outcomes(await undoing) == [(2, "failed", ABORTED)]
        assert outcomes(await agent.core.loop.undo(2)) == [(2, "failed", ABORTED), (1, "undone", "done")]
        assert world.log == ["move 1", "move 2", "back 2", "back 1"]
        assert await agent.core.loop.undo(2) == []


async def test_who_stops_the_robot_on_its_way_back_stops_the_whole_undo() -> None:
    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        undoing = await taking_back(agent, world)
        (way_back,) = await world.bridge.calls(open_only=True)
        await world.bridge.cancel(way_back.call_id, "stop was called (by 'mcp/one')")
        newest, left = await undoing
        assert (newest.how, newest.text) == ("failed", "stop was called (by 'mcp/one')")
        assert left.how == "failed"
        assert left.text.startswith("nothing was begun, as taking back call ")
        await asyncio.sleep(5)
        assert world.log == ["move 1", "move 2", "back 2"]
        assert outcomes(await agent.core.loop.undo(2)) == [(1, "undone", "done")], "it is still there"


@pytest.mark.parametrize(("becomes", "told"), [(Outcome.FAILED, ""), (Outcome.LOST, "; it is not known how far")])
async def test_so_it_is_where_what_was_stopped_fails_or_is_lost_then(becomes: Outcome, told: str) -> None:
    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        undoing = await taking_back(agent, world)
        way_back = next(call for call in world.bridge.calls_.values() if call.outcome is None)
        way_back.reason = "enough"
        world.bridge._close(way_back, becomes, "the knee is stuck")
        newest, left = await undoing
        assert (newest.how, newest.text.startswith(f"the knee is stuck{told}")) == ("failed", True)
        assert left.text.startswith("nothing was begun, as taking back call ")
        assert world.log == ["move 1", "move 2", "back 2"]


async def test_nor_by_the_rollback_that_ends_a_rollback() -> None:
    world = LineWorld()
    async with world.agent(MOVES, asks(("hang", {}))) as agent:
        await agent.say("go")
        await until(lambda: [call.skill for call in agent.core.calls.known.open] == ["hang"])
        first = asyncio.create_task(agent.core.loop.abort(rollback=True))
        await until(lambda: world.log[-1] == "back 2")
        await agent.core.loop.abort(rollback=True)
        await first
        assert outcomes([each for each in await agent.core.loop.undo(None) if each.skill == "move"]) == [
            (2, "failed", ABORTED),
            (1, "undone", "done"),
        ]
        assert world.log == ["move 1", "move 2", "back 2", "back 1"]


async def test_what_was_taken_back_when_the_abort_came_is_known() -> None:
    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        undoing = await taking_back(agent, world)
        (call,) = agent.core.calls.known.open
        await call.closed.wait()  # before the undo hears of it, which looks anew twice a second
        await agent.core.loop.abort()
        assert outcomes(await undoing) == [(2, "undone", "done")]
        assert outcomes(await agent.core.loop.undo(2)) == [(1, "undone", "done")]
        assert world.log == ["move 1", "move 2", "back 2", "back 1"]


async def test_an_abort_ends_an_undo_that_still_asks_what_is_offered() -> None:
    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        offered = world.bridge.skills

        async def slowly() -> list[OfferedSkill]:
            await asyncio.sleep(1)
            return await offered()

        world.bridge.skills = slowly  # type: ignore[method-assign]
        undoing = asyncio.create_task(agent.core.loop.undo(2))
        await until(lambda: agent.core.loop.state is LoopState.UNDOING)
        began = clock.monotonic()
        await agent.core.loop.abort()
        assert clock.monotonic() - began < 0.5
        with pytest.raises(SkillError, match=BEFORE):
            await undoing
        await asyncio.sleep(5)
        assert world.log == ["move 1", "move 2"]
        assert [each.how for each in await agent.core.loop.undo(2)] == ["undone", "undone"]


async def test_an_abort_ends_an_undo_that_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        loop, wake = agent.core.loop, agent.core.loop.wake

        def wake_and_abort() -> None:
            monkeypatch.setattr(loop, "wake", wake)
            loop.begin_abort()

        monkeypatch.setattr(loop, "wake", wake_and_abort)
        with pytest.raises(SkillError, match=BEFORE):
            await loop.undo(2)
        await asyncio.sleep(5)
        assert world.log == ["move 1", "move 2"]
        assert [each.how for each in await loop.undo(2)] == ["undone", "undone"]


async def test_two_undos_at_once_take_nothing_back_twice() -> None:
    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        results = await asyncio.gather(*(agent.core.loop.undo(2) for _ in range(4)), return_exceptions=True)
        assert [result for result in results if isinstance(result, list) and result]
        assert world.log == ["move 1", "move 2", "back 2", "back 1"]


async def test_what_could_not_be_begun_is_still_there() -> None:
    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        world.bridge.refuse = lambda skill: True
        assert outcomes(await agent.core.loop.undo(1)) == [(2, "failed", "move_back is busy")]
        world.bridge.refuse = lambda skill: False
        undoing = await taking_back(agent, world)
        agent.core.control.pause()
        await asyncio.sleep(100)
        assert not undoing.done()
        await agent.core.loop.abort()
        assert outcomes(await undoing) == [(2, "undone", "done")]
        agent.core.control.resume()
        assert outcomes(await agent.core.loop.undo(2)) == [(1, "undone", "done")]
        assert world.log == ["move 1", "move 2", "back 2", "back 1"]


@pytest.mark.parametrize(
    ("error", "is_left"),
    [
        (SkillUnavailableError("its module is hung"), True),
        (SkillArgumentError("move_back", {"by": "it must be a number"}), True),
        (NoAnswerError("no connection", may_have_arrived=False), True),
        (NoAnswerError("no answer", may_have_arrived=True), False),
        (CallInDoubtError("nobody knows"), False),
        (SkillError("an odd answer"), False),
    ],
)
async def test_only_what_may_have_begun_is_not_begun_again(error: SkillError, is_left: bool) -> None:
    def refuse(skill: str) -> bool:
        raise error

    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        world.bridge.refuse = refuse
        ((by, how, text),) = outcomes(await agent.core.loop.undo(1))
        assert (by, how, text.startswith(str(error))) == (2, "failed", True)
        world.bridge.refuse = lambda skill: False
        assert outcomes(await agent.core.loop.undo(1)) == [(2 if is_left else 1, "undone", "done")]


@pytest.mark.parametrize("is_paused", [False, True])
async def test_a_way_back_whose_answer_was_lost_is_not_asked_for_again_in_a_pause(is_paused: bool) -> None:
    asked: list[str] = []

    def lose(skill: str) -> bool:
        asked.append(skill)
        if len(asked) == 1:
            raise NoAnswerError("the bridge was killed", may_have_arrived=True)
        return False

    world = LineWorld()
    async with world.agent(MOVES, says("done")) as agent:
        await moved(agent)
        world.bridge.refuse = lose
        undoing = asyncio.create_task(agent.core.loop.undo(1))
        await until(lambda: asked)
        if is_paused:
            agent.core.control.pause()
        ((by, how, text),) = outcomes(await undoing)
        assert (by, how) == (2, "failed" if is_paused else "undone")
        assert ("not known whether the call has begun" in text) is is_paused
        assert asked == ["move_back"] * (1 if is_paused else 2)
        assert ("back 2" in world.log) is not is_paused


@pytest.mark.parametrize(
    ("when", "text", "next_by"),
    [
        ("rejected", "the module hangs; nothing was begun, so `undo` takes it back still", 2),
        ("lost", "the module hangs; it is not known how far that came", 1),
    ],
)
async def test_an_undo_that_did_not_run_is_begun_later_if_it_certainly_was_not(
    when: Literal["rejected", "lost"], text: str, next_by: int, tmp_path: Path
) -> None:
    world = LineWorld()
    async with world.with_model(FunctionModel(in_turn(MOVES, says("done"))), tmp_path) as agent:
        await moved(agent)
        world.bridge.lose = lambda skill: when
        assert outcomes(await agent.core.loop.undo(1)) == [(2, "failed", text)]
        world.bridge.lose = lambda skill: ""
    async with world.with_model(FunctionModel(in_turn()), tmp_path) as agent:
        assert outcomes(await agent.core.loop.undo(1)) == [(next_by, "undone", "done")]


async def test_that_an_undo_was_aborted_and_what_is_left_outlive_the_agent(tmp_path: Path) -> None:
    world = LineWorld()
    model = FunctionModel(in_turn(asks(*(("move", {"by": by}) for by in (1, 2, 3))), says("done")))
    async with world.with_model(model, tmp_path / "before") as agent:
        await moved(agent)
        world.bridge.refuse = lambda skill: True
        assert [each.how for each in await agent.core.loop.undo(1)] == ["failed"]
        world.bridge.refuse = lambda skill: False
        undoing = asyncio.create_task(agent.core.loop.undo(2))
        await until(lambda: world.log[-1] == "back 2")
        await agent.core.loop.abort()
        assert [each.how for each in await undoing] == ["undone", "failed"]
        shutil.copytree(tmp_path / "before", tmp_path / "after")  # as it is on disk when the agent is killed
    async with world.with_model(FunctionModel(in_turn()), tmp_path / "after") as agent:
        assert [(each.arguments["by"], each.how) for each in await agent.core.loop.undo(None)] == [
            (2, "failed"),
            (1, "undone"),
        ]
        assert world.log == ["move 1", "move 2", "move 3", "back 3", "back 2", "back 1"]


@pytest.mark.parametrize("rollback", [False, True])
async def test_a_bug_while_one_call_is_taken_back_is_told_and_the_others_are_taken_back(
    rollback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    world = LineWorld()
    backs: list[str] = []

    def refuse(skill: str) -> bool:
        backs.append(skill)
        if backs == ["move_back"]:
            raise ZeroDivisionError
        return False

    async with world.agent(MOVES, asks(("follow", {}))) as agent:
        await agent.say("go")
        await until(lambda: [call.skill for call in agent.core.calls.known.open] == ["follow"])
        if not rollback:
            await agent.core.loop.abort()
        world.bridge.refuse = refuse
        undone = (await agent.core.loop.abort(rollback=True)).undone if rollback else await agent.core.loop.undo(3)
        _, failed, back = undone
        assert (failed.arguments["by"], failed.how, "(ZeroDivisionError)" in failed.text) == (2, "failed", True)
        assert failed.text.split()[2] in caplog.text, "the log has what the text names"
        assert outcomes([back]) == [(1, "undone", "done")]
        assert world.log[-2:] == ["follow ended", "back 1"]
        assert agent.core.loop.state is LoopState.IDLE


async def test_a_bug_before_anything_is_taken_back_fails_the_agent_and_no_report_says_that_all_is_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken() -> list[OfferedSkill]:
        raise ZeroDivisionError

    world = LineWorld()
    agent = await world.agent(MOVES, says("done")).__aenter__()
    await moved(agent)
    monkeypatch.setattr(world.bridge, "skills", broken)
    undo = UndoCommand(1)
    agent.core.loop._commands.append(undo)
    agent.core.loop.wake()
    with pytest.raises(SkillError, match="the agent is stopping"):
        await undo.done
    assert agent._task is not None
    with pytest.raises(ZeroDivisionError):
        await agent._task
    await agent.leave()
    await world.bridge.close()


async def test_what_takes_too_long_to_be_taken_back_does_not_go_on() -> None:
    world = LineWorld()
    async with world.agent(asks(("slow", {})), says("done")) as agent:
        await agent.over(await agent.say("go"))
        (undone,) = await agent.core.loop.undo()
        assert undone.text.startswith("slow_back took longer than")
        (back,) = [call for call in world.bridge.calls_.values() if call.skill == "slow_back"]
        assert back.reason == "undoing took too long"


async def test_an_abort_says_nothing_of_an_undo_by_how_the_one_before_it_has_ended() -> None:
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1}), ("move", {"by": 2})), says("done")) as agent:
        await agent.over(await agent.say("go"))
        world.bridge.latency_s = lambda: 1.0
        undoing = asyncio.create_task(agent.core.loop.undo(2))
        await until(lambda: [data["phase"] for data in agent.data("undo")] == ["start", "end", "start"])
        await asyncio.sleep(0.1)
        await agent.core.loop.abort()
        await asyncio.wait([undoing])
        assert [data["phase"] for data in agent.data("undo")] == ["start", "end", "start"], "it may not be taken back"


async def test_an_abort_ends_what_is_being_taken_back() -> None:
    world = LineWorld()
    async with world.agent(asks(("slow", {})), says("done")) as agent:
        await agent.over(await agent.say("go"))
        undoing = asyncio.create_task(agent.core.loop.undo())
        await until(lambda: "slow_back" in {call.skill for call in world.bridge.calls_.values()})
        await agent.core.loop.abort()
        await asyncio.wait([undoing])
        (back,) = [call for call in world.bridge.calls_.values() if call.skill == "slow_back"]
        await until(lambda: back.outcome)
        assert back.reason == "undoing was aborted"
