"""What counts for a mission of the updates and the results of its calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams.agent.missions.end_state import CallFact, fact_of_result, fact_of_update
from dimos_streams.agent.models.protocol import STALE
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.agent.loop.function_model import asks, says
from tests.agent.loop.line_world import LineWorld

STOP = f"{STOPPED}: enough"


def close(outcome: str, text: str = "so it ended", **more: Any) -> ToolEvent:
    fields = {"utime": 1, "call_id": "c1", "seq": 2, "module": "legs", "skill": "walk", "caller": "agent"}
    return ToolEvent.from_dict({**fields, "type": "close", "text": text, "data": {"outcome": outcome, **more}})


@pytest.mark.feature("D4")
@pytest.mark.parametrize(
    ("event", "fact"),
    [
        (close("completed"), CallFact(cancelled="by")),
        (close("failed"), CallFact(failed="walk: so it ended", cancelled="by")),
        (close("lost"), CallFact(failed="walk: so it ended", cancelled="by")),
        (close("cancelled"), CallFact(cancelled="by")),
        (close("cancelled", STOP), CallFact(stopped=STOP, cancelled="by")),
        (close("failed", to_end=STOP), CallFact(stopped=STOP, cancelled="by")),
        (close("lost", to_end="enough"), CallFact(cancelled="by")),
    ],
)
def test_an_update_is_a_fact(event: ToolEvent, fact: CallFact) -> None:
    assert fact_of_update(event, "by") == fact


@pytest.mark.feature("D4")
@pytest.mark.parametrize(
    ("text", "event", "given", "fact"),
    [
        ("no such skill", None, {"is_error": True, "ran": True}, CallFact(failed="walk: no such skill")),
        ("not run: cut", None, {"is_error": True, "ran": False}, CallFact()),
        ("it was running: cut", None, {"is_error": True, "ran": False, "began": True}, CallFact()),
        (STALE, None, {"is_error": True, "ran": True}, CallFact()),
        ("still running", None, {"ran": True, "began": True}, CallFact(cancelled="by")),
        ("bad", close("failed"), {"is_error": True, "began": True}, CallFact(failed="walk: bad", cancelled="by")),
        ("ended", close("cancelled"), {"is_error": True, "began": True}, CallFact(cancelled="by")),
        (STOP, close("cancelled", STOP), {"is_error": True}, CallFact(stopped=STOP)),
        ("bad", close("failed", to_end=STOP), {"is_error": True}, CallFact(stopped=STOP)),
    ],
)
def test_a_result_is_a_fact_unless_it_only_stands_for_one(
    text: str, event: ToolEvent | None, given: dict[str, Any], fact: CallFact
) -> None:
    how = {"is_error": False, "began": False, "ran": False, **given}
    assert fact_of_result("walk", text, event, cancelled="by", **how) == fact


@pytest.mark.feature("B7")
@pytest.mark.virtual_time
async def test_what_came_to_its_result_before_its_turn_was_cut_has_that_result_and_nothing_has_failed() -> None:
    world = LineWorld()
    async with world.agent(asks(("look", {"for_s": 5}), ("list_calls", {})), says("well")) as agent:
        mission = await agent.say("look")
        await asyncio.sleep(1)
        agent.core.loop.cut()
        await agent.over(mission)
        first, second = agent.data("result")
        assert first["text"].startswith("call c0 was running: ")
        assert (second["text"].partition(" ")[0], second["is_error"]) == ("c0:", False)
        assert (mission.end_state.failed_call, mission.reason) == ("", "completed")
