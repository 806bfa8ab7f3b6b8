"""On a full disk each order says if the agent's successor would not know of it, and it is kept once there is room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.record_files import FOLDER
from dimos_streams.agent.resumption.reader import read_resumption
from dimos_streams.agent.resumption.state import Resumption
from dimos_streams.operator.messages.kept_report import unkept_of
from tests.agent.policies.brain import Brain
from tests.agent.policies.robot_stage import robot_stage
from tests.agent.stage import Stage
from tests.helpers import fill, until


async def said(made: Stage, order: str, **arguments: Any) -> tuple[str, bool]:
    """The text of an order, without the end that says so, and whether it is kept."""
    close = await (await made.harness.call(order, caller="operator", **arguments)).closed()
    assert close.outcome == "completed", close.text
    kept = not unkept_of(close.data["result"])
    text, not_kept, why = close.text.partition("; NOT KEPT: ")
    assert (kept, why) == (not not_kept, unkept_of(close.data["result"]))
    assert kept or why.startswith("the record in ")
    return text, kept


def fill_all(made: Stage, disk: Path, *missions: str) -> Path:
    """Fill a disk, and what is left of the last blocks of the record's files; see ``fill``."""
    ballast = fill(disk)
    for id in ((), *((mission,) for mission in missions)):
        made.agent.core.events.emit(EventKind.NOTE, id, text="x" * 8192)
    return ballast


def read_by_a_successor(disk: Path) -> Resumption:
    found = read_resumption(disk / FOLDER, "agent")
    assert found is not None
    return found


@pytest.mark.feature("B10", "F5")
@pytest.mark.virtual_time
async def test_settings_on_a_full_disk(small_disk: Path) -> None:
    async with robot_stage(Brain(), run_dir=small_disk, base_url="http://127.0.0.1:9/v1") as (made, _):
        assert await said(made, "set_skill", skill="look", enabled=False) == ("look is disabled", True)
        ballast = fill_all(made, small_disk)
        assert not (await said(made, "pause"))[1]
        assert not (await said(made, "abort"))[1], "it stays paused"
        assert await said(made, "resume") == ("goes on", True), "as all that is on the disk has it"
        assert await said(made, "step", mode="on") == ("step mode is on", False)
        assert await said(made, "step") == ("step mode is on; no call waits", False)
        assert await said(made, "step", mode="off") == ("step mode is off", True)
        assert await said(made, "set_skill", skill="look", enabled=False) == ("look was disabled already", True)
        assert await said(made, "set_skill", skill="look", enabled=True) == ("look is enabled", False)
        assert await said(made, "set_skill", skill="walk", enabled=False) == ("walk is disabled", False)
        assert await said(made, "set_skill", skill="walk", enabled=True) == ("walk is enabled", True)
        assert await said(made, "set_model", model="offline") == ("asks offline from now on", True)
        assert await said(made, "set_model", model="openai:m") == ("asks openai:m from now on", False)
        assert await said(made, "forget") == ("what was said before is forgotten", False)
        assert not (await said(made, "pause"))[1]
        settings = read_by_a_successor(small_disk).settings
        assert (settings.mode, settings.model, settings.skills) == (Mode.RUNNING, "", {"look": False})
        assert settings.outdated

        ballast.unlink()
        assert (await said(made, "pause"))[1], "given again it is tried again"
        assert await said(made, "set_skill", skill="look", enabled=True) == ("look was enabled already", True)
        settings = read_by_a_successor(small_disk).settings
        assert (settings.mode, settings.model, settings.skills["look"]) == (Mode.PAUSED, "openai:m", True)
        assert not settings.outdated


@pytest.mark.feature("B10", "C5", "F5")
@pytest.mark.virtual_time
async def test_decisions_and_what_is_taken_back_on_a_full_disk(small_disk: Path) -> None:
    steps = [{"skill": "walk", "arguments": {"distance_m": by}} for by in (2, 3)]
    plan = ("create_plan", {"goal": "away", "steps": steps})
    box, submit = ("drop", {"what": "box"}), ("submit_plan", {"plan": "plan-1"})
    brain = Brain([("walk", {})], "walked", [("drop", {"what": "vase"})], [box], [plan, submit], "done")
    async with robot_stage(brain, run_dir=small_disk) as (made, robot):
        walking = await made.say("walk")
        await walking.closed()
        mission = await made.say("drop it")
        asked = made.agent.core.gate_state.approvals.pending
        await until(asked)
        ballast = fill_all(made, small_disk, walking.id, mission.id)
        vase = {"approval": asked()[0].id, "decision": "reject"}
        assert not (await said(made, "decide", **vase))[1]
        assert not (await said(made, "decide", **vase))[1], "said again"
        await until(asked)
        assert (await said(made, "decide", approval=asked()[0].id, decision="approve"))[1], "nothing else follows"
        await until(asked)
        shorter = {
            "approval": asked()[0].id,
            "decision": "approve",
            "arguments": {"goal": "away", "steps": steps[:1]},
        }
        assert not (await said(made, "decide", **shorter))[1]
        await mission.closed()
        assert robot.log_ == ["walk 1", "drop box"]
        text, kept = await said(made, "undo", count=3)
        assert (text.count("it declares no undo"), text.split("\n")[-1].partition(";")[0]) == (2, "0 of 3 undone")
        assert not kept
        events = read_by_a_successor(small_disk).events
        assert not {"approval_decided", "undo"} & {event.kind for event in events}

        ballast.unlink()
        assert (await said(made, "decide", **vase))[1]
        events = read_by_a_successor(small_disk).events
        decided = [event.data["approval"]["state"] for event in events if event.kind == "approval_decided"]
        assert decided == ["rejected", "approved", "approved"]
        assert [event.data["phase"] for event in events if event.kind == "undo"] == ["start", "end"] * 2
