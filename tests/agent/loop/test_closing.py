"""Every end of a turn closes what was asked for, and a mission whose end is known is never gone on with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    Finish,
    ModelDelta,
    ModelError,
    ModelRequest,
    TextDelta,
    UserMessage,
)
from dimos_streams.agent.record.mission_record import MissionRecord
from dimos_streams.agent.record.read_record import read_lines, read_missions
from dimos_streams.agent.resumption.reader import read_resumption
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Line
from tests.agent.loop.function_model import FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld

ORDER = "drive forward 3 metres"


@pytest.mark.virtual_time
async def test_an_agent_that_ends_before_its_loop_has_begun_leaves_nobody_waiting() -> None:
    """As one does that has found no bridge yet."""
    agent = LineWorld().agent()
    aborting = asyncio.ensure_future(agent.core.loop.abort())
    await asyncio.sleep(0)
    await agent.core.close()
    with pytest.raises(SkillError, match="the agent is stopping"):
        await aborting


def is_closed(request: ModelRequest) -> bool:
    """Whether the order was answered before what was said next, in messages of their own."""
    texts = [message.text for message in request.messages if isinstance(message, UserMessage)]
    at = next(i for i, message in enumerate(request.messages) if message.text == ORDER)
    answers = [m for m in request.messages[at:-1] if isinstance(m, AssistantMessage) and not m.tool_calls]
    return texts.count(ORDER) == 1 and bool(answers) and request.messages[-1].text == "what do you see?"


def fails(request: ModelRequest) -> list[ModelDelta]:
    raise ModelError("HTTP 401: no such key")


def breaks(request: ModelRequest) -> list[ModelDelta]:
    raise RuntimeError("a bug")


ENDS: dict[str, tuple[str, Callable[[ModelRequest], list[ModelDelta]]]] = {
    "fault": ("error", fails),
    "bug": ("error", breaks),
    "content filter": ("content_filter", lambda request: [Finish("content_filter")]),
    "length": ("length", lambda request: [Finish("length")]),
    "cut": ("cut", lambda request: []),
    "a claim of an abort": ("model:aborted", lambda request: [Finish("aborted")]),
    "nothing said": ("no_answer", lambda request: [Finish("stop")]),
    "iterations": ("max_iterations", lambda request: asks(("move", {"by": 1}))),
    "budget": ("max_tokens", lambda request: asks(("move", {"by": 1}))),
    "deadline": ("deadline", lambda request: asks(("hang", {}))),
}


@pytest.mark.feature("B9", "D7")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.virtual_time
async def test_an_order_of_a_turn_that_ended_does_not_come_back(end: str) -> None:
    reason, answer = ENDS[end]

    world = LineWorld()
    model = FunctionModel(answer)
    limits = {"max_tokens": 10} if end == "budget" else {"deadline_s": 5} if end == "deadline" else {}
    async with world.with_model(model, max_iterations=2, limits=limits) as agent:
        assert (await agent.over(await agent.say(ORDER))).reason == reason
        model.answer_with(lambda request: says("a wall"))
        await agent.over(await agent.say("what do you see?"))
        assert is_closed(model.requests[-1]), model.requests[-1].messages


def record_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


async def killed(world: LineWorld, folder: Path, order: Callable[[AgentInMemory], Any]) -> None:
    """An agent that dies at once when ``order`` has been given."""
    line = Line(world.bridge)
    model = FunctionModel(lambda request: asks(("follow", {})))
    agent = AgentInMemory(world.bridge, model, {"plan": {"motions": None}}, record_dir=folder, line=line)
    await agent.__aenter__()
    await agent.say(ORDER)
    while not agent.core.calls.known.open:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(0.1)
    asking = asyncio.ensure_future(order(agent))
    await asyncio.sleep(0)
    line.cut()
    lines = {path: path.read_bytes() for path in record_files(folder)}
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await agent.leave()
    for path, text in lines.items():  # what it did after its death was not written
        path.write_bytes(text)


@pytest.mark.feature("B5", "B10")
@pytest.mark.parametrize("order", ["abort", "cancel"])
@pytest.mark.virtual_time
async def test_a_mission_that_was_ended_is_not_gone_on_with_after_a_restart(order: str, tmp_path: Path) -> None:
    async def end(agent: AgentInMemory) -> None:
        if order == "abort":
            await agent.core.loop.abort("enough")
        else:
            next(iter(agent.core.loop.missions.values())).end("cancelled")

    world = LineWorld()
    await killed(world, tmp_path, end)
    model = FunctionModel(lambda request: says("a wall"))
    async with world.with_model(model, tmp_path) as agent:
        await asyncio.sleep(60)
        assert model.requests == []
        assert {call.outcome for call in world.bridge.calls_.values()} == {"cancelled"}
        (mission,) = read_missions(tmp_path, "agent")
        assert mission.done is not None
        assert mission.done.data["reason"] == ("aborted" if order == "abort" else "cancelled")
        await agent.over(await agent.say("what do you see?"))
        assert is_closed(model.requests[-1]), model.requests[-1].messages


@pytest.mark.feature("B10")
def test_an_end_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    def event(number: int, kind: str, mission: str = "m1", **data: Any) -> AgentEvent:
        return AgentEvent(number=number, utime=number, agent="agent", kind=kind, missions=(mission,), data=data)

    folder = tmp_path / "missions"
    record = MissionRecord(folder, "agent")
    record.open()
    record.write(event(1, "mission_start", id="m1", text="go"))
    record.close()
    kept = folder.rename(tmp_path / "away")
    record.write(event(2, "note", text="this is lost"))
    record.write(event(3, "done", reason="aborted", text=""))
    kept.rename(folder)
    record.write(event(4, "mission_start", "m2", id="m2", text="hello"))
    record.close()
    resumption = read_resumption(folder, "agent")
    assert resumption is not None
    assert [mission.id for mission in resumption.missions] == ["m2"]
    assert [line.event.number for line in read_lines(folder / "agent.m1.jsonl")] == [1, 3]


@pytest.mark.feature("B10")
@pytest.mark.virtual_time
async def test_events_that_have_no_json_form_are_rendered_as_well_as_they_can_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = LineWorld()
    heard: list[AgentEvent] = []
    async with world.with_model(FunctionModel(lambda request: says("fine")), tmp_path) as agent:

        def broken(event: AgentEvent) -> None:
            raise RuntimeError("a listener with a bug")

        agent.core.events.listen(broken)
        agent.core.events.listen(heard.append)
        emit: Any = agent.core.events.emit
        emit("a kind of this test", (), text="half: \ud83d", what=object(), number=float("nan"))
        for _ in range(3):
            emit("note", (), text="\ude00")
        assert heard[0].data["text"] == "half: \ufffd"
        assert "<object object" in heard[0].data["what"]
        assert [json.loads(event.model_dump_json())["data"]["text"] for event in heard[1:]] == ["\ufffd"] * 3
        assert caplog.text.count("was repaired") == 1
        assert (await agent.over(await agent.say("hi"))).text == "fine"
        general = [line.event for line in read_lines(tmp_path / "agent.general.jsonl")]
        assert [event.data["text"] for event in general][-4:] == [event.data["text"] for event in heard[:4]]


@pytest.mark.feature("B1")
@pytest.mark.virtual_time
async def test_halves_of_a_character_in_a_stream(tmp_path: Path) -> None:
    world = LineWorld()
    half: list[ModelDelta] = [TextDelta("\ud83d"), TextDelta("\ude00 and \ud83d"), Finish("stop\ud83d")]
    model = FunctionModel(lambda request: half)
    async with world.with_model(model, tmp_path) as agent:
        mission = await agent.over(await agent.say("smile"))
        assert (mission.text, mission.reason) == ("😀 and \ufffd", "stop\ufffd")
        (recorded,) = read_missions(tmp_path, "agent")
        assert recorded.done is not None
        assert recorded.events == agent.core.events.after(0)
