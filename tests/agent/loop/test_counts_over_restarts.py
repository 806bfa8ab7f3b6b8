"""What a mission has used up of what it may do without a word of the operator, it has used up after a restart too."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.models.protocol import Finish, TextDelta, TokenUsage
from dimos_streams.agent.record.mission_record import MissionRecord
from dimos_streams.agent.resumption.reader import read_resumption
from dimos_streams.common import boot_time
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until


async def restarted(
    tmp_path: Path, first: list[Any], second: list[Any], **config: Any
) -> tuple[LineWorld, str, list[str]]:
    """Two processes of an agent in one mission: what was done, why it ended, and the results of the second."""
    world = LineWorld()
    before = FunctionModel(in_turn(*first, says("I wait")))
    async with world.with_model(before, tmp_path, **config) as agent:
        await agent.say("go")
        await until(lambda: len(before.requests) == len(first) + 1)
        await asyncio.sleep(1)
        await agent.leave()
        async with world.with_model(FunctionModel(in_turn(*second)), tmp_path, **config) as successor:
            (mission,) = successor.core.loop.missions.values()
            world.released.set()
            await successor.over(mission)
            return world, mission.reason, [data["text"] for data in successor.data("result")]


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_free_motions_are_counted_over_a_restart(tmp_path: Path) -> None:
    first = [asks(("follow", {}), ("move", {"by": 1})), asks(("move", {"by": 2}))]
    second = [asks(("move", {"by": 3})), says("then not")]
    world, reason, results = await restarted(tmp_path, first, second, plan={"motions": 2})
    assert reason == "completed"
    assert "2 motions of this mission have begun without a plan" in results[-1]
    assert world.log == ["move 1", "move 2", "follow ended"]


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_what_a_mission_has_used_it_has_used_after_a_restart_too(tmp_path: Path) -> None:
    world, before = LineWorld(), FunctionModel(in_turn(asks(("follow", {})), says("I wait")))
    async with world.with_model(before, tmp_path) as agent:
        mission = await agent.say("go")
        await until(lambda: mission.spent.requests == 2)
        await asyncio.sleep(1)
        await agent.leave()
        async with world.with_model(FunctionModel(in_turn(says("there"))), tmp_path) as successor:
            (again,) = successor.core.loop.missions.values()
            assert again.spent == mission.spent


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_motion_that_was_refused_is_not_counted_over_a_restart(tmp_path: Path) -> None:
    rules = [{"skill": "move", "arguments": {"by": 9}, "action": "deny"}]
    first = [asks(("follow", {})), asks(("move", {"by": 9})), asks(("move", {"by": 1}))]
    second = [asks(("move", {"by": 3})), says("there")]
    config: dict[str, Any] = {"plan": {"motions": 2}, "approval": {"rules": rules}}
    world, _, _ = await restarted(tmp_path, first, second, **config)
    assert world.log == ["move 1", "follow ended", "move 3"]


@pytest.mark.feature("D4")
@pytest.mark.parametrize(
    ("steps", "config", "reason"),
    [
        ([3, 4], {"limits": {"actions": 4, "actions_per_hour": 0.001}}, "max_actions"),
        ([1, 1], {"repetition": {"mission_stop_at": 4, "warn_at": None, "hint_at": None}}, "repetition"),
    ],
    ids=["actions", "repetition"],
)
@pytest.mark.virtual_time
async def test_actions_are_counted_over_a_restart(
    steps: list[int], config: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    first = [asks(("follow", {})), *[asks(("drop", {"n": n})) for n in (1, *steps[:1])]]
    second = [asks(("drop", {"n": n})) for n in (*steps[1:], 1)]
    world, ended, _ = await restarted(tmp_path, first, second, **config)
    assert ended == reason
    assert len([line for line in world.log if line.startswith("drop")]) <= 3


def set_clock(monkeypatch: pytest.MonkeyPatch, by_s: float, after_s: float = 0.0) -> None:
    """Set the machine's clock forward or back, while time goes on as it does."""
    wall = clock.utime
    step = partial(monkeypatch.setattr, clock, "utime", lambda: wall() + round(by_s * 1e6))
    asyncio.get_running_loop().call_later(after_s, step)


@pytest.mark.feature("D4")
@pytest.mark.parametrize("after_s", [6.5, 12.5], ids=["while it works", "after that"])
@pytest.mark.parametrize("by_s", [-1200.0, 36000.0])
@pytest.mark.parametrize(
    "config",
    [
        {"limits": {"actions": 3, "actions_per_hour": 900}},
        {"repetition": {"mission_stop_at": 4, "mission_within_s": 6, "warn_at": None, "hint_at": None}},
    ],
    ids=["actions", "repetition"],
)
@pytest.mark.virtual_time
async def test_a_mission_at_the_worlds_pace_goes_on_though_the_clock_was_set(
    config: dict[str, Any], by_s: float, after_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, by_s, after_s)
    looks = asks(("look", {"for_s": 4}))
    _, reason, _ = await restarted(tmp_path, [asks(("follow", {})), *[looks] * 3], [looks, says("there")], **config)
    assert reason == "completed"


@pytest.mark.feature("D4")
@pytest.mark.parametrize("by_s", [-1200.0, 0.0])
@pytest.mark.virtual_time
async def test_a_clock_that_was_set_back_makes_up_for_no_action(
    by_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, by_s, after_s=2.5)
    steps = [asks(("move", {"by": n})) for n in range(6)]
    limits = {"actions": 4, "actions_per_hour": 0.001}
    world, reason, _ = await restarted(tmp_path, [asks(("follow", {})), *steps[:2]], steps[2:], limits=limits)
    assert reason == "max_actions"
    assert [line for line in world.log if line.startswith("move")] == ["move 0", "move 1", "move 2"]


@pytest.mark.feature("D2")
@pytest.mark.parametrize(("away_s", "ends_after_s"), [(10, 50), (100, 101)], ids=["before", "meanwhile"])
@pytest.mark.virtual_time
async def test_a_mission_lasts_no_longer_because_its_agent_was_restarted(
    away_s: float, ends_after_s: float, tmp_path: Path
) -> None:
    limits = {"deadline_s": 50}
    world = LineWorld()
    began = clock.monotonic()
    async with world.with_model(
        FunctionModel(in_turn(asks(("follow", {})), says("I wait"))), tmp_path, limits=limits
    ) as agent:
        await agent.say("go")
        await asyncio.sleep(1)
        await agent.leave()
        await asyncio.sleep(away_s)
        unasked = FunctionModel(in_turn(says("what for?")))
        async with world.with_model(unasked, tmp_path, limits=limits) as successor:
            (mission,) = successor.core.loop.missions.values()
            await successor.over(mission)
            assert mission.reason == "deadline"
            assert clock.monotonic() - began == pytest.approx(ends_after_s, abs=0.5)
            assert world.log == ["follow ended"]
            assert not unasked.requests


@pytest.mark.feature("D2")
@pytest.mark.parametrize("by_s", [-1200.0, 36000.0])
@pytest.mark.parametrize("is_late", [False, True], ids=["in time", "late"])
@pytest.mark.parametrize("booted", [False, True], ids=["same boot", "another boot"])
def test_how_long_a_mission_has_lasted_is_known_though_the_clock_was_set(
    by_s: float, is_late: bool, booted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"deadline_s": 100}
    wall, steady = clock.utime, clock.steady

    async def main() -> str:
        world = LineWorld()
        before = FunctionModel(in_turn(asks(("follow", {})), says("I wait")))
        async with world.with_model(before, tmp_path, limits=limits) as agent:
            await agent.say("go")
            await until(lambda: len(before.requests) == 2 and agent.core.loop.state is LoopState.IDLE)
            await agent.leave()
            passed_s = 200 if is_late else 10
            monkeypatch.setattr(clock, "utime", lambda: wall() + round((by_s + passed_s) * 1e6))
            monkeypatch.setattr(clock, "steady", lambda: steady() + passed_s)
            if booted:
                monkeypatch.setattr(boot_time, "boot_id", lambda: "another")
            async with world.with_model(FunctionModel(in_turn()), tmp_path, limits=limits) as successor:
                (mission,) = successor.core.loop.missions.values()
                world.released.set()
                await until(lambda: mission.over)
                return mission.reason

    is_over = by_s > 0 if booted else is_late
    assert asyncio.run(main()) == ("deadline" if is_over else "completed")


FAILED: list[Any] = [TextDelta("that did not work"), TokenUsage(1, 1), Finish("call_failed")]
"""As the offline model ends."""


@pytest.mark.feature("D4")
@pytest.mark.parametrize("dies", ["after the turn", "in the turn"])
@pytest.mark.virtual_time
async def test_a_command_that_failed_has_failed_after_a_restart_too(
    dies: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = LineWorld()
    steps = [asks(("follow", {})), asks(("fail", {"n": 7})), FAILED]
    before = FunctionModel(in_turn(*steps))
    if dies == "in the turn":
        before = FunctionModel(in_turn(*steps), lambda: 1000.0 if len(before.requests) == 3 else 0.0)
    async with world.with_model(before, tmp_path) as agent:
        await agent.say("go")
        await until(lambda: len(before.requests) == 3)
        await asyncio.sleep(1)
        monkeypatch.setattr(agent.core.record, "_append", lambda mission, line: True)  # as if it was killed
        await agent.leave()
        monkeypatch.undo()
        after = [says("she has left")] if dies == "after the turn" else [FAILED, says("she has left")]
        async with world.with_model(FunctionModel(in_turn(*after)), tmp_path) as successor:
            (mission,) = successor.core.loop.missions.values()
            await until(lambda: successor.core.loop.state is LoopState.IDLE)
            world.released.set()
            await successor.over(mission)
            assert (mission.reason, mission.why) == ("call_failed", "fail: no: 7")


@pytest.mark.feature("D4")
@pytest.mark.virtual_time
async def test_why_a_turn_stopped_is_known_after_a_restart(tmp_path: Path) -> None:
    world = LineWorld()
    cut: list[Any] = [TextDelta("I follow her and"), TokenUsage(1, 1), Finish("tool_calls")]
    async with world.with_model(FunctionModel(in_turn(asks(("follow", {})), cut)), tmp_path) as agent:
        mission = await agent.say("go")
        await until(lambda: bool(mission.why))
        reported = (mission.reason, mission.why, mission.text)
        await agent.leave()
        async with world.with_model(FunctionModel(in_turn(says("she has left"))), tmp_path) as successor:
            (mission,) = successor.core.loop.missions.values()
            assert (mission.reason, mission.why, mission.text) == reported


@pytest.mark.feature("D4")
@pytest.mark.parametrize(
    ("outcome", "text", "failed_call", "stopped", "cancelled"),
    [
        ("failed", "no: she is gone", "follow: no: she is gone", "", ""),
        ("timed_out", "too long", "follow: too long", "", ""),
        ("cancelled", "by the model", "", "", ""),
        ("cancelled", "by the operator", "", "", "follow: by the operator"),
        ("cancelled", f"{STOPPED}: a child", "", f"{STOPPED}: a child", f"follow: {STOPPED}: a child"),
        ("completed", "she has left", "", "", ""),
    ],
)
def test_an_update_that_reports_a_failure_is_known_after_a_restart(
    outcome: str, text: str, failed_call: str, stopped: str, cancelled: str, tmp_path: Path
) -> None:
    def update(number: int, type: str, cancelled: str = "", **fields: Any) -> AgentEvent:
        event = {"utime": number, "call_id": "c1", "seq": number, "type": type, "module": "skills", "skill": "follow"}
        reported = {**event, "caller": "agent", "text": "still there", "data": {}, **fields}
        data = {"text": f"[follow] {reported['text']}", "skill": "follow", "call_id": "c1", "event": reported}
        data |= {"cancelled": cancelled} if cancelled else {}
        return AgentEvent(number=number, utime=number, agent="agent", kind="update", missions=("m1",), data=data)

    record = MissionRecord(tmp_path, "agent")
    record.open()
    start = {"id": "m1", "text": "follow her"}
    record.write(AgentEvent(number=1, utime=1, agent="agent", kind="mission_start", missions=("m1",), data=start))
    record.write(update(2, "update"))
    record.write(update(3, "close", cancelled, text=text, data={"outcome": outcome, "result": None}))
    record.close()
    resumption = read_resumption(tmp_path, "agent")
    assert resumption is not None
    (mission,) = resumption.missions
    state = mission.end_state
    assert (state.failed_call, state.stopped, mission.in_turn) == (failed_call, stopped, True)
    assert state.cancelled_call == cancelled
    assert (resumption.calls, resumption.closed) == ([], {"c1": ()})


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_events_are_numbered_on_over_a_restart(tmp_path: Path) -> None:
    world = LineWorld()
    async with world.with_model(FunctionModel(in_turn(says("hello"))), tmp_path) as agent:
        await agent.over(await agent.say("hello"))
        await agent.leave()
        last = agent.core.events.last_number
        assert last > 3
        async with world.with_model(FunctionModel(in_turn(says("again"))), tmp_path) as successor:
            await successor.over(await successor.say("again"))
            numbers = [event.number for event in successor.core.events.after(0)]
            assert numbers == list(range(last + 1, last + 1 + len(numbers)))
