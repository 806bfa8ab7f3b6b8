"""The order of events, of calls, and of what the model is shown."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.loop.states import TRANSITIONS, IllegalTransitionError, LoopState, StateMachine
from dimos_streams.agent.models.protocol import TextDelta
from dimos_streams.agent.record.agent_events import KINDS
from tests.agent.loop.function_model import FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld

DOCUMENT = Path(__file__).parents[3] / "docs" / "agent-loop.md"


@pytest.mark.feature("D1", "B10")
@pytest.mark.virtual_time
async def test_the_events_of_two_turns() -> None:
    world = LineWorld()
    async with world.agent(asks(("follow", {})), says("I follow"), says("over")) as agent:
        mission = await agent.say("follow her")
        await asyncio.sleep(5)
        world.released.set()
        await agent.over(mission)
        assert agent.kinds() == [
            *("mission_start", "input"),
            *("iteration_start", "call_start", "call_complete", "usage", "answer"),
            *("call_run", "call_open", "call_end", "result"),
            *("iteration_start", "content", "usage", "answer", "stop"),
            *("update", "iteration_start", "content", "usage", "answer", "stop", "done"),
        ]
        numbers = [event.number for event in agent.core.events.after(0)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert all(event.missions == (mission.id,) for event in agent.core.events.after(0))


@pytest.mark.feature("D1")
@pytest.mark.virtual_time
async def test_a_call_is_reported_to_have_ended_while_others_run() -> None:
    world = LineWorld()
    batch = asks(("look", {"for_s": 3}), ("look", {"for_s": 1}), ("look", {"for_s": 2}))
    async with world.agent(batch, says("seen")) as agent:
        ended: list[tuple[float, str]] = []
        agent.core.events.listen(
            lambda event: (
                ended.append((clock.monotonic(), event.data["tool_call_id"]))
                if event.kind in ("call_end", "result")
                else None
            )
        )
        await agent.over(await agent.say("look"))
        assert [(round(at), which) for at, which in ended] == [
            *((1, "t1"), (2, "t2"), (3, "t0")),
            *((3, "t0"), (3, "t1"), (3, "t2")),
        ]


@pytest.mark.virtual_time
async def test_text_is_reported_in_pieces_of_a_tenth_of_a_second() -> None:
    world = LineWorld()
    pieces = [TextDelta(str(n % 10)) for n in range(100)]
    model = FunctionModel(lambda request: [*pieces, *says("")], lambda: 0.01)
    async with world.with_model(model) as agent:
        await agent.over(await agent.say("count"))
        chunks = [data["text"] for data in agent.data("content")]
        assert 10 <= len(chunks) <= 12
        assert "".join(chunks) == "0123456789" * 10 == agent.data("answer")[0]["text"]


@pytest.mark.feature("B7")
@pytest.mark.virtual_time
async def test_move_look_move() -> None:
    world = LineWorld()
    batch = asks(("move", {"by": 1}), ("look", {}), ("look", {}), ("move", {"by": 2}), ("look", {}))
    async with world.agent(batch, says("done")) as agent:
        began = clock.monotonic()
        await agent.over(await agent.say("go"))
        assert clock.monotonic() - began == pytest.approx(4, abs=0.1)
        texts = [data["text"].split('"')[1] for data in agent.data("result")]
        assert texts == ["at 1", "seen from 1", "seen from 1", "at 3", "seen from 3"]
        assert world.most_looking == 2


@pytest.mark.feature("B7")
@pytest.mark.virtual_time
async def test_at_most_so_many_sense_at_once() -> None:
    world = LineWorld()
    batch = asks(*(("look", {"for_s": 1 + n % 3}) for n in range(10)))
    async with world.agent(batch, says("done"), limits={"parallel_calls": 3}) as agent:
        await agent.over(await agent.say("look around"))
        assert world.most_looking == 3
        assert [data["tool_call_id"] for data in agent.data("result")] == [f"t{n}" for n in range(10)]


@pytest.mark.feature("B7")
@pytest.mark.virtual_time
async def test_what_was_asked_for_after_a_motion_that_goes_on_is_not_run() -> None:
    world = LineWorld()
    async with world.agent(asks(("hang", {}), ("look", {})), says("well"), answer_timeout_s=2) as agent:
        await agent.say("go")
        await asyncio.sleep(5)
        first, second = agent.data("result")
        assert "still running" in first["text"]
        assert second["text"].startswith("not run: hang (call c0), asked for before it, has not answered yet")
        assert list(world.bridge.calls_) == ["c0"]


def test_what_is_not_in_the_table_is_a_bug() -> None:
    machine = StateMachine()
    for old in LoopState:
        for new in LoopState:
            if new is old or new in TRANSITIONS[old]:
                continue
            machine._state = old
            with pytest.raises(IllegalTransitionError, match=f"can't go from '{old}' to '{new}'"):
                machine.go(new)
            assert machine.state is old


def rows_of_document(heading: str) -> list[list[str]]:
    section = DOCUMENT.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_documented_tables_are_the_codes() -> None:
    states = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[2])) for row in rows_of_document("States")}
    assert states == {state.value: {new.value for new in TRANSITIONS[state]} for state in LoopState}
    assert [row[0].strip("`") for row in rows_of_document("Modes")] == [mode.value for mode in Mode]
    assert [row[0].strip("`") for row in rows_of_document("Events")] == list(KINDS)
