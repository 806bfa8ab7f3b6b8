"""What the operator has set holds after the agent was killed, whatever has happened since."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.record import mission_record
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.read_record import read_missions
from dimos_streams.agent.resumption.reader import read_resumption
from dimos_streams.agent.resumption.state import Resumption
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.function_model import Answer, FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld

LESSON = "no temperature is sent"


def agent(folder: Path, *answers: Answer) -> AgentInMemory:
    return LineWorld().with_model(FunctionModel(in_turn(*answers)), folder)


def set_all(agent: AgentInMemory) -> None:
    """Everything that an operator sets, twice, so that each time the last counts."""
    for skill in ("move", "look"):
        agent.core.gate_state.enabled.set(skill, False)
    agent.core.gate_state.enabled.set("look", True)
    agent.core.control.pause("hands off")
    agent.core.control.resume()
    agent.core.control.step_mode()
    agent.core.model_switch.use("offline")
    agent.core.events.emit(EventKind.NOTE, (), text="learnt", model="offline", lesson=LESSON)
    agent.core.events.emit(EventKind.CONSOLE, (), present=False)
    agent.core.events.emit(EventKind.CONSOLE, (), present=True)


def check_all(found: Resumption | None) -> None:
    assert found is not None
    settings = found.settings
    assert (settings.mode, settings.model, settings.watched) == (Mode.STEPPING, "offline", True)
    assert settings.skills == {"move": False, "look": True}
    assert found.lessons == {"offline": [LESSON]}


def chatter(agent: AgentInMemory, turn_overs: int) -> None:
    """General events until the file was begun anew so often."""
    path = agent.core.record._path("general")
    for _ in range(turn_overs):
        before = path.stat().st_ino
        while path.stat().st_ino == before:
            agent.core.events.emit(EventKind.NOTE, (), text="x" * 1000)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mission_record, "_GENERAL_BYTES", 5000)


@pytest.mark.feature("B3", "B4", "B10")
@pytest.mark.parametrize("restarts", [1, 3])
@pytest.mark.usefixtures("small_files")
@pytest.mark.virtual_time
async def test_what_is_set_outlives_any_number_of_events(tmp_path: Path, restarts: int) -> None:
    async with agent(tmp_path) as first:
        set_all(first)
        chatter(first, 4)
        check_all(read_resumption(tmp_path, "agent"))
    for _ in range(restarts):
        async with agent(tmp_path) as next_life:
            assert next_life.core.control.mode is Mode.STEPPING
            assert next_life.core.gate_state.enabled.disabled == ("move",)
            chatter(next_life, 3)
            check_all(read_resumption(tmp_path, "agent"))
    assert size_of(tmp_path) < 20_000


@pytest.mark.feature("B10")
@pytest.mark.usefixtures("small_files")
@pytest.mark.virtual_time
async def test_a_kill_while_the_file_is_begun_anew_loses_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step of it, twice in a row: the second file comes from a process that was killed in the same way."""
    steps = 0

    def watched(step: Callable[..., object]) -> Callable[..., object]:
        def run(path: Path, *args: object) -> object:
            nonlocal steps
            done = step(path, *args)
            steps += 1
            check_all(read_resumption(tmp_path / "record", "agent"))
            shutil.copytree(tmp_path / "record", tmp_path / f"killed-{steps}")
            return done

        return run

    async with agent(tmp_path / "record") as first:
        set_all(first)
        with monkeypatch.context() as patched:
            for name in ("write_bytes", "replace"):
                patched.setattr(Path, name, watched(getattr(Path, name)))
            chatter(first, 2)
    assert steps == 6
    for step in range(1, steps + 1):
        folder = tmp_path / f"killed-{step}"
        async with agent(folder) as second:
            second.core.events.emit(EventKind.NOTE, (), text="so that the file is there")
            chatter(second, 2)
            check_all(read_resumption(folder, "agent"))


@pytest.mark.feature("B10")
@pytest.mark.usefixtures("small_files")
@pytest.mark.virtual_time
async def test_a_conversation_that_was_forgotten_stays_forgotten(tmp_path: Path) -> None:
    async with agent(tmp_path, says("hello")) as first:
        await first.over(await first.say("my name is Ada"))
        first.core.memory.forget()
        chatter(first, 3)
    async with agent(tmp_path) as second:
        assert not any("Ada" in message.text for message in second.core.conversation.messages())


@pytest.mark.feature("B10")
@pytest.mark.virtual_time
async def test_nothing_begins_where_there_is_no_room_for_a_skill_that_was_disabled(tmp_path: Path) -> None:
    async with agent(tmp_path) as first:
        for skill in ("move", "look"):
            first.core.gate_state.enabled.set(skill, False)
    full = {"disabled_skills": [f"skill_{number}" for number in range(9_999)]}
    async with LineWorld().with_model(FunctionModel(in_turn()), tmp_path, **full) as second:
        assert not second.core.gate_state.enabled.enabled("move")
        assert second.core.control.mode is Mode.PAUSED
        assert "'look' can't be disabled" in second.data("pause")[-1]["reason"]


@pytest.mark.feature("B10")
@pytest.mark.virtual_time
async def test_the_general_file_is_no_old_mission(tmp_path: Path) -> None:
    async with agent(tmp_path, says("hello"), says("hello")) as first:
        first.core.gate_state.enabled.set("move", False)
        general = first.core.record._path("general")
        os.utime(general, (1, 1))
        for _ in range(2):
            await first.over(await first.say("hi"))
    mission_record.MissionRecord(tmp_path, "agent", kept=1).open()
    found = read_resumption(tmp_path, "agent")
    assert found is not None
    assert found.settings.skills == {"move": False}
    assert len(read_missions(tmp_path)) == 1


@pytest.mark.feature("B10")
@pytest.mark.virtual_time
async def test_the_setting_with_which_the_general_file_begins_is_recorded_once(tmp_path: Path) -> None:
    async with agent(tmp_path) as first:
        first.core.gate_state.enabled.set("move", False)
        first.core.control.pause()
        lines = first.core.record._path("general").read_text().splitlines()
    assert [json.loads(line)["event"]["kind"] for line in lines] == ["skill_set", "pause"]


@pytest.mark.feature("B10")
@pytest.mark.virtual_time
async def test_what_was_set_while_nothing_could_be_written_is_written_later(tmp_path: Path) -> None:
    folder = tmp_path / "record"
    async with agent(folder, says("hello")) as first:
        shutil.rmtree(folder)
        set_all(first)
        folder.mkdir()
        await first.over(await first.say("hi"))
        check_all(read_resumption(folder, "agent"))


@pytest.mark.feature("B8", "B10")
@pytest.mark.virtual_time
async def test_a_model_can_make_no_plan_that_fills_the_record(tmp_path: Path) -> None:
    heavy = {"skill": "move", "arguments": {"by": 1, "why": "\u672c" * 1000}}
    answers = [
        asks(("create_plan", {"goal": "look around" + "x" * 89_989, "steps": []})),
        asks(("create_plan", {"goal": "\u672c" * 9999, "steps": [heavy]})),
        *(asks(*[("add_plan_steps", {"plan": "plan-1", "steps": [heavy]})] * 8) for _ in range(3)),
        says("done planning"),
    ]
    plans: list[AgentEvent] = []
    async with agent(tmp_path, *answers) as made:
        made.core.events.listen(lambda event: plans.append(event) if event.kind == "plan" else None)
        made.core.gate_state.enabled.set("look", False)
        await made.over(await made.say("please make some plans"))
        refused, *_ = made.data("result")
        assert refused["is_error"]
        assert refused["text"].startswith("the goal has 90000 characters, and 10000 are the most")
        assert len(refused["text"]) < 400
        assert len(plans) > 2
        assert all(len(event.model_dump_json().encode()) < 21_000 for event in plans)
        assert [step.arguments["by"] for step in made.core.gate_state.plans.get("plan-1").steps] == [1] * len(plans)
