"""Events are entered together as they would be one by one, and readers have them before the call is folded."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import pytest

from dimos_streams.bridge.calls.call_state import CallState
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.journal.broadcast import JournalBroadcast
from dimos_streams.bridge.journal.entry import EncodedEntry
from dimos_streams.bridge.journal.journal import Journal
from dimos_streams.tool_stream.event import EventType, ToolEvent
from tests.bridge.parts import event


def _entered(batches: Sequence[Sequence[ToolEvent]]) -> list[dict[str, object]]:
    """What is known of each call after batches."""
    with contextlib.closing(Journal()) as journal:
        journal.open()
        ledger = Ledger(journal, JournalBroadcast(journal))
        for batch in batches:
            ledger.enter(list(batch))
    calls = sorted(ledger.calls, key=lambda call: call.call_id)
    return [{**call.view().model_dump(), "progress": dict(call.progress)} for call in calls]


_LIFE = [
    event(1, "open"),
    event(1, "open", call_id="c2"),
    event(2, text="a", data={"step": 1}),
    event(3, "update", text="answer"),
    event(2, "update", call_id="c2", text="of two"),
    event(4, "update", text="b"),
    event(5, text="c", data={"step": 2}),
    event(3, call_id="c2", text="d", data={"step": 7}),
    event(6, "update", text="e"),
    event(7, "gap", text="lost"),
    event(8, text="f", data={"step": 3}),
    event(9, "close", text="done", data={"outcome": "completed", "result": 4}),
    event(10, "update", text="too late"),
]


@pytest.mark.parametrize("size", range(2, len(_LIFE) + 1))
def test_a_batch_leaves_of_a_call_what_its_events_leave_one_by_one(size: int) -> None:
    for upto in range(1, len(_LIFE) + 1):
        events = _LIFE[:upto]
        batches = [events[at : at + size] for at in range(0, upto, size)]
        assert _entered(batches) == _entered([[one] for one in events])


@pytest.mark.virtual_time
async def test_readers_have_an_event_before_the_call_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal()
    journal.open()
    broadcast = JournalBroadcast(journal)
    ledger = Ledger(journal, broadcast)
    ledger.enter([event(1, "open"), event(2, "update", text="answer")])
    done: list[object] = []

    def take(page: list[EncodedEntry]) -> bool:
        done.extend(entry.offset for entry in page)
        return True

    apply = CallState.apply

    def folded(call: CallState, event: ToolEvent) -> None:
        done.append("folded")
        apply(call, event)

    monkeypatch.setattr(CallState, "apply", folded)
    reader = broadcast.reader(take=take)
    waiting = asyncio.create_task(reader.page())
    await asyncio.sleep(0)
    ledger.enter([event(3, text="a")])
    assert done == [3, "folded"]
    assert broadcast.entries(2, 1) is not None, "who looks for it later finds it"
    reader.close()
    assert await waiting == []
    journal.close()


def test_only_an_open_says_what_a_call_was_begun_with() -> None:
    data = {"arguments": {"a": 1}, "parent": "p", "resources": ["base"]}
    kinds: tuple[EventType, ...] = ("open", "update")
    begun = {type: CallState.from_event(event(1, type, data=data)) for type in kinds}
    assert (begun["open"].arguments, begun["open"].parent, begun["open"].resources) == ({"a": 1}, "p", ("base",))
    assert (begun["update"].arguments, begun["update"].parent, begun["update"].resources) == ({}, "", ())
    assert [call.missing_open for call in begun.values()] == [False, True]
