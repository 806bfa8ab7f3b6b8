"""The operator's hand on an agent: what holds the robot, and what an order that is cut short leaves behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams.agent.control.commands import AbortCommand
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.control.hold_reasons import HoldReasons
from dimos_streams.agent.control.reports import AbortReport
from dimos_streams.agent.control.undo_log import UndoLog
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.hold_stage import hold_stage
from tests.agent.policies.gate_inputs import Events
from tests.agent.stage import calling, script

pytestmark = pytest.mark.feature("B5")


def test_a_stop_holds_the_robot_until_the_last_one_is_carried_out() -> None:
    changes: list[str] = []
    reasons = HoldReasons(Control(Events().emit), lambda: False)
    reasons.changed.add(lambda: changes.append(reasons.why()))
    with reasons.stopping():
        with pytest.raises(SkillError), reasons.stopping():
            raise SkillError("a call may still run")
        assert reasons.why() == "the operator has said stop"
    assert changes == ["the operator has said stop"] * 3 + [""]


@pytest.mark.virtual_time
async def test_an_agent_that_stops_while_a_motion_goes_on_that_nobody_has_ended_holds_no_robot(
    tmp_path: Path,
) -> None:
    async with hold_stage(script(tmp_path / "turns", calling("drive"))) as made:
        await made.harness.call("say", text="drive")
        await made.until_it_drives()
        await made.agent.end_tasks()
        await made.agent.stop()
        assert not made.agent.core.control.paused


@pytest.mark.virtual_time
async def test_a_loop_that_ends_before_its_abort_is_over_ends_no_calls_of_others_behind_it() -> None:
    command = AbortCommand("", False, (), ())
    command.end_others(asyncio.Event().wait)
    command.give_up()
    with pytest.raises(SkillError, match="the agent is stopping"):
        await command.done
    await asyncio.wait(command.others)
    assert command.others[0].cancelled()


@pytest.mark.parametrize(("missions", "calls"), [(0, 0), (0, 1), (1, 0)])
def test_only_where_an_abort_has_ended_nothing_it_says_what_ends_the_calls_of_others(
    missions: int, calls: int
) -> None:
    ids = ("x",)
    report = AbortReport(reason="", missions=ids[:missions], cancelled=ids[:calls], unfinished=())
    assert ("`say stop` ends these, too" in str(report)) is (missions == calls == 0)


@pytest.mark.virtual_time
async def test_what_can_not_be_ended_is_not_taken_back_while_it_runs(tmp_path: Path) -> None:
    async with hold_stage(script(tmp_path / "turns", calling("drive"))) as made:
        await made.harness.call("say", text="drive")
        await made.until_it_drives()
        (undone,) = await made.agent.core.loop.undo(1)
        assert (undone.how, undone.text) == ("failed", "it still runs")


def test_what_only_senses_is_not_taken_back() -> None:
    log = UndoLog()
    for number, senses in enumerate((False, True), 1):
        data = {"skill": "s", "call_id": f"c{number}", "arguments": {}, "senses": senses}
        log.apply(AgentEvent(number=number, utime=number, agent="agent", kind="call_open", data=data))
    assert [entry.call_id for entry in log.newest(None)] == ["c1"]
