"""An agent that is stopped while a sub-agent works: the sub-agent's calls go on, and its successor hears of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.agent.models.protocol import ModelRequest, UserMessage
from dimos_streams.agent.record.read_record import read_lines
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import FakeCall
from tests.agent.loop.function_model import Answer, FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until

AGENTS = {"helper": {"description": "follows people", "prompt": "helper", "skills": ["follow"]}}


def delegates(request: ModelRequest) -> Answer:
    """The agent gives the task away; the helper follows, and thinks for long about each update."""
    helps = request.messages[0].text.startswith("helper")
    if len(request.messages) > 2:
        return says("I see")
    return asks(("follow", {})) if helps else asks(("delegate", {"agent": "helper", "task": "follow Ann"}))


def updates_seen(model: FunctionModel, text: str) -> int:
    """How many messages of the newest request have the text of an update."""
    messages = model.requests[-1].messages
    return sum(isinstance(message, UserMessage) and text in message.text for message in messages)


@pytest.mark.feature("E6", "B10")
@pytest.mark.virtual_time
async def test_the_calls_of_a_sub_agent_outlive_the_agent(tmp_path: Path) -> None:
    world = LineWorld()
    slow = FunctionModel(delegates, lambda: 0.2)
    agent = AgentInMemory(world.bridge, slow, {"agents": AGENTS}, record_dir=tmp_path)
    async with agent:
        mission = await agent.say("go")
        await until(lambda: bool(world.bridge.calls_))
        (call,) = world.bridge.calls_.values()
        await until(lambda: slow.streams == 1 and len(slow.requests) == 3)
        call.send("update", "found her")
        unread = len(world.bridge.journal)
        await until(lambda: agent.core.reader.offset >= unread)
        await agent.leave()
        assert is_running(call)
        assert newest_offset(tmp_path) < unread
        reader = FunctionModel(lambda request: says("she is there"))
        successor = AgentInMemory(world.bridge, reader, {"agents": AGENTS}, record_dir=tmp_path)
        async with successor:
            await until(lambda: bool(reader.requests) and updates_seen(reader, "found her") == 1)
            resumed = successor.core.loop.missions[mission.id]
            assert [each.missions for each in successor.core.calls.known.open] == [(resumed,)]
            resumed.end("cancelled")
            await successor.over(resumed)
            assert call.reason == "the operator has withdrawn what led to this call"


def newest_offset(record_dir: Path) -> int:
    """Up to where any line of the record says that all before it is recorded."""
    return max(line.offset for path in record_dir.glob("*.jsonl") for line in read_lines(path))


def is_running(call: FakeCall) -> bool:
    return call.outcome is None and not call.reason
