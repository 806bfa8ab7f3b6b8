"""Calls that were to end and have not: they hold the robot, and their missions say so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.control.undo import Undoing
from dimos_streams.agent.control.undo_log import UndoEntry
from dimos_streams.agent.control.undo_pause import UndoPause
from dimos_streams.agent.missions.stop_conditions import Progress
from tests.agent.hold_stage import HoldStage, hold_stage
from tests.agent.stage import calling, script
from tests.helpers import until

Scenario = Callable[[HoldStage], Any]


async def deadline(made: HoldStage) -> str:
    return "the mission that led to this call was ended: deadline"


async def withdrawn(made: HoldStage) -> str:
    (mission,) = made.agent.core.loop.missions.values()
    mission.end("cancelled")
    return "the operator has withdrawn what led to this call"


async def aborted(made: HoldStage) -> str:
    report = await (await made.harness.call("abort")).closed()
    assert report.text.splitlines()[0] == "aborted: 1 mission, 1 call; the robot is held by gate"
    return "aborted by the operator"


async def over_time(made: HoldStage) -> str:
    return "it ran longer than 4 s"


async def replaced(made: HoldStage) -> str:
    return "another call was to take its place"


async def stopped(made: HoldStage) -> str:
    return "the mission that led to this call was ended: battery: 5% left"


def battery_empty(progress: Progress) -> str | None:
    """Empty once it drives."""
    return "battery: 5% left" if progress.executed else None


async def undone(made: HoldStage) -> str:
    (call,) = made.agent.core.calls.known.open
    (mission,) = made.agent.core.loop.missions.values()
    entry = UndoEntry(call_id=call.call_id, skill="drive", arguments={})
    core = made.agent.core
    pause = UndoPause(core.control, core.events.emit, lambda entry: False)
    await Undoing(core.calls, core.events.emit, settle_s=1.0, timeout_s=1.0, pause=pause).end([entry])
    mission.end("cancelled")
    return "it is undone"


CONFIG: dict[Any, dict[str, Any]] = {
    deadline: {"limits": {"deadline_s": 5}},
    over_time: {"limits": {"call_timeout_s": 4}},
    stopped: {"stop_when": {"conditions": [f"{__name__}:battery_empty"]}},
}


AFTER_S: dict[Any, float] = {deadline: 4.9, over_time: 3.9, replaced: 9.9}


@pytest.mark.slow
@pytest.mark.feature("B5", "D2")
@pytest.mark.parametrize("end", [deadline, withdrawn, aborted, over_time, replaced, stopped, undone])
@pytest.mark.virtual_time
async def test_whatever_gives_a_call_up_holds_the_robot_and_the_mission_says_so(
    end: Scenario, tmp_path: Path
) -> None:
    turns = [calling("drive")] * (2 if end is replaced else 1)
    async with hold_stage({**CONFIG.get(end, {}), **script(tmp_path / "turns", *turns)}) as made:
        said = await made.harness.call("say", text="drive")
        await made.until_it_drives()
        await asyncio.sleep(AFTER_S.get(end, 0.0))
        began = clock.monotonic()
        why = await end(made)
        await until(lambda: made.speed == 0.0)
        assert clock.monotonic() - began < 3.0
        assert made.agent.core.control.paused
        await until(lambda: made.agent.core.calls.memory.given_up)
        # Where the mission itself goes on, it waits for the operator.
        closed = await said.closed() if end not in (over_time, replaced) else None
        (left,) = made.agent.core.calls.memory.given_up
        expected = f"drive (call {left.call_id}) may still run; the robot is held by gate"
        if closed is not None:
            assert closed.data["result"]["unfinished"] == [expected]
            assert expected in closed.text
        assert left.close is not None
        assert left.close.text.startswith(why)
        assert left.close.text.endswith("may still run; the robot is held by gate")

        # It drives on in its own mind: an abort does not let the robot go, its end does not, an operator does.
        again = await (await made.harness.call("abort")).closed()
        assert again.data["result"]["unfinished"] == [left.call_id]
        await asyncio.sleep(20)
        assert made.speed == 0.0
        made.robot.released.set()
        await until(lambda: not made.agent.core.calls.memory.given_up)
        assert made.agent.core.control.paused
        await (await made.harness.call("resume")).result()
        assert not made.agent.core.holding


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_agent_that_stops_before_its_cancelled_calls_have_ended_leaves_the_robot_held(
    tmp_path: Path,
) -> None:
    async with hold_stage(script(tmp_path / "turns", calling("drive"))) as made:
        await made.harness.call("say", text="drive")
        await made.until_it_drives()
        await withdrawn(made)
        await asyncio.sleep(0.2)
        await made.agent.end_tasks()
        await made.agent.stop()
        await until(lambda: made.speed == 0.0, 1.0)
        await asyncio.sleep(10)
        assert made.speed == 0.0


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_a_call_that_only_senses_is_given_up_without_holding_the_robot(tmp_path: Path) -> None:
    config = {"limits": {"deadline_s": 5}, **script(tmp_path / "turns", calling("stare"))}
    async with hold_stage(config) as made:
        closed = await (await made.harness.call("say", text="stare")).closed()
        (unfinished,) = closed.data["result"]["unfinished"]
        assert unfinished.endswith(") may still run")
        assert not made.agent.core.holding


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_where_no_gate_confirms_the_mission_says_that_nothing_does(tmp_path: Path) -> None:
    config = {"limits": {"deadline_s": 5}, **script(tmp_path / "turns", calling("drive"))}
    async with hold_stage(config, gate=False) as made:
        closed = await (await made.harness.call("say", text="drive")).closed()
        (unfinished,) = closed.data["result"]["unfinished"]
        assert "the robot is NOT held: no velocity gate was heard" in unfinished
