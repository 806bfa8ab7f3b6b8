"""The message queue, the record, and what the call manager makes of events that come in odd ways."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams.agent.context.conversation import SILENT, Conversation
from dimos_streams.agent.missions.message_queue import CallUpdate, MessageQueue, OperatorInput, QueueItem
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.models.protocol import AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from dimos_streams.agent.resumption.mission_reader import read_unfinished
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import EventType, ToolEvent


def event(call_id: str, seq: int, type: EventType, text: str = "", **data: Any) -> ToolEvent:
    return ToolEvent(
        utime=1, call_id=call_id, seq=seq, type=type, module="m", skill="s", caller="agent", text=text, data=data
    )


@pytest.mark.virtual_time
async def test_newer_progress_replaces_older_and_nothing_else_is_dropped() -> None:
    queue = MessageQueue()
    update: list[QueueItem] = [
        CallUpdate(event("a", 2, "progress")),
        CallUpdate(event("b", 2, "progress")),
        OperatorInput("hello"),
        CallUpdate(event("a", 3, "update")),
        CallUpdate(event("a", 4, "progress")),
        CallUpdate(event("a", 5, "close", outcome="completed")),
    ]
    for item in update:
        await queue.put(item)
    assert queue.take_nowait() == update[1:]
    assert len(queue) == 0
    await queue.put(update[0])
    assert queue.take_nowait() == update[:1]


@pytest.mark.virtual_time
async def test_a_full_queue_makes_wait_in_order() -> None:
    queue = MessageQueue(capacity=3)

    async def produce() -> None:
        for number in range(20):
            await queue.put(OperatorInput(str(number)))

    producer = asyncio.create_task(produce())
    taken: list[str] = []
    while len(taken) < 20:
        items = queue.take_nowait()
        assert len(items) <= 3
        taken += [item.text for item in items if isinstance(item, OperatorInput)]
        await asyncio.sleep(0.1)
    await producer
    assert taken == [str(number) for number in range(20)]


@pytest.mark.virtual_time
async def test_progress_that_replaces_older_needs_no_room() -> None:
    queue = MessageQueue(capacity=1)
    await queue.put(CallUpdate(event("a", 2, "progress")))
    newer = CallUpdate(event("a", 3, "progress"))
    await asyncio.wait_for(queue.put(newer), 1.0)
    assert queue.take_nowait() == [newer]


@pytest.mark.virtual_time
async def test_whoever_waits_for_room_is_not_overtaken() -> None:
    queue = MessageQueue(capacity=1)
    await queue.put(OperatorInput("first"))
    waiting = [asyncio.create_task(queue.put(OperatorInput(text))) for text in ("second", "third")]
    await asyncio.sleep(1)
    taken: list[QueueItem] = []

    async def take_all() -> None:
        while len(taken) < 4:
            await asyncio.sleep(0.1)
            taken.extend(queue.take_nowait())

    taking = asyncio.create_task(take_all())
    taken += queue.take_nowait()
    await queue.put(OperatorInput("fourth"))  # there is room, and nobody who waits for it has run yet
    await asyncio.gather(*waiting, taking)
    assert [item.text for item in taken if isinstance(item, OperatorInput)] == ["first", "second", "third", "fourth"]


@pytest.mark.virtual_time
async def test_progress_that_waits_is_kept_until_there_is_room_for_newer_progress() -> None:
    queue = MessageQueue(capacity=2)
    old, new = CallUpdate(event("a", 2, "progress")), CallUpdate(event("a", 3, "progress"))
    await queue.put(old)
    await queue.put(OperatorInput("full"))
    before = asyncio.create_task(queue.put(OperatorInput("waits")))
    behind = asyncio.create_task(queue.put(new))
    await asyncio.sleep(1)
    assert queue.take_nowait() == [old, OperatorInput("full")]
    await asyncio.gather(before, behind)
    assert queue.take_nowait() == [OperatorInput("waits"), new]


@pytest.mark.virtual_time
async def test_a_put_that_is_cancelled_lets_go_of_its_mission() -> None:
    queue = MessageQueue(capacity=1)
    mission = Mission("m", lambda: None)
    await queue.put(OperatorInput("first"))
    waiting = asyncio.create_task(queue.put(OperatorInput("second", (mission,))))
    await asyncio.sleep(1)
    assert not mission.over
    waiting.cancel()
    await asyncio.wait([waiting])
    assert mission.over
    assert len(queue.take_nowait()) == 1


@pytest.mark.virtual_time
async def test_what_a_model_sees() -> None:
    conversation = Conversation("orders")
    call = ToolCall("t1", "s", "{}")
    first_update = event("c", 3, "update", "update")
    conversation.add_entry("operator", "go")
    conversation.add_entry("assistant", "", tool_calls=(call,))
    conversation.add_entry("tool", "gone", tool_call_id="t1", skill="s", is_error=True)
    conversation.add_entry("progress", "half", call_id="c")
    conversation.add_entry("note", "n")
    conversation.add_entry("error", "e")
    conversation.add_entry("assistant", "")
    conversation.add_entry("event", "update", event=first_update)
    assert conversation.messages()[1:] == (
        UserMessage("go"),
        AssistantMessage("", (call,)),
        ToolResultMessage("t1", "s", "gone", True),
        AssistantMessage(SILENT),
        UserMessage("update", first_update),
    )


def test_progress_is_one_entry_per_call() -> None:
    conversation = Conversation()
    for number in range(1000):
        conversation.add_entry("progress", str(number), call_id="ab"[number % 2])
    assert [entry.text for entry in conversation.entries] == ["998", "999"]
    conversation.add_entry("event", "done", call_id="b")
    assert [entry.text for entry in conversation.entries] == ["998", "done"]
    assert [entry.text for entry in conversation.after(999)] == ["done"]


def test_progress_of_calls_whose_end_is_told_elsewhere_does_not_pile_up() -> None:
    """A call that was handed to a sub-agent ends in that one's conversation."""
    conversation = Conversation(max_entries=10)
    for number in range(100):
        conversation.add_entry("progress", "half", call_id=str(number))
    assert [entry.call_id for entry in conversation.entries] == [str(number) for number in range(90, 100)]


def test_damaged_calls_in_a_record_count_as_none() -> None:
    texts = ['{"x": 1}', '{"x": 1, "x": 90}', "[1]", '{"x": NaN}', ""]
    calls = [{"id": f"t{n}", "name": "move", "arguments": text} for n, text in enumerate(texts)]
    answer = AgentEvent(
        number=1,
        utime=1,
        agent="agent",
        kind="answer",
        data={"text": "", "tool_calls": calls, "finish": "tool_calls"},
    )
    (asked,) = read_unfinished("m", [answer]).asked
    assert asked.calls == (("move", {"x": 1}), ("move", {}))
