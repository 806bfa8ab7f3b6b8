"""Events are entered together as they would be one by one, and readers have them before the call is folded."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.remembered_calls import Calls
from dimos_streams.bus import create_bus
from dimos_streams.journal import tables
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.broadcast_reader import BroadcastReader
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Query
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.receiving.batch import BatchedDelivery
from tests.bridge.scene import event
from tests.helpers import until


def _entered(batches: Sequence[Sequence[ToolEvent]]) -> list[dict[str, object]]:
    """What is known of each call after batches."""
    with contextlib.closing(Journal()) as journal:
        journal.open()
        ledger = Ledger(JournalBroadcast(journal))
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
    ledger = Ledger(broadcast)
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


@contextlib.asynccontextmanager
async def _delivering(ledger: Ledger) -> AsyncIterator[tuple[BatchedDelivery, list[ToolEvent]]]:
    """What hands events to a ledger, and the events that it has acknowledged."""
    bus = create_bus("memq://")
    await bus.open()
    acknowledged: list[ToolEvent] = []
    batch = BatchedDelivery(ledger.enter, acknowledged.extend)
    batch.start(bus.subscribe(EVENTS, lambda channel, data: None))
    yield batch, acknowledged
    await bus.close()
    ledger.journal.close()


@pytest.mark.virtual_time
@pytest.mark.parametrize("unsolicited", [False, True])
async def test_a_close_that_the_journal_could_not_take_closes_its_call_when_it_comes_again(
    unsolicited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal()
    journal.open()
    ledger = Ledger(JournalBroadcast(journal))
    call = CallState(call_id="c1", skill="follow", module="worker", caller="agent", resources=("base",))
    if not unsolicited:
        ledger.begin(call)
    ledger.enter([event(1, "open", data={"resources": ["base"]})])
    async with _delivering(ledger) as (batch, acknowledged):
        monkeypatch.setattr(tables, "write", _out_of_memory)
        batch.events += [event(2, "update", text="on my way"), event(3, "close", data={"outcome": "completed"})]
        batch.hand_over()
        (found,) = ledger.calls
        assert (found.state, found.last_seq, found.answer, found.outcome) == ("open", 1, None, None)
        assert (acknowledged, ledger.leases.holders(), journal.last_offset) == ([], {"base": "c1"}, 1)
        monkeypatch.undo()
        await until(lambda: acknowledged)
        assert found.closed.is_set()
        assert (found.state, found.answer, found.outcome) == ("closed", "on my way", "completed")
        assert (ledger.calls.open, ledger.leases.holders(), ledger.ignored) == ([], {}, 0)
        kept = journal.read(Query(0), 10, 1 << 20).entries
        assert [(entry.offset, entry.event.seq) for entry in kept] == [(1, 1), (2, 2), (3, 3)]
        assert ledger._unsolicited.bytes == 0


@pytest.mark.virtual_time
@pytest.mark.parametrize("lost", [False, True])
async def test_where_the_journal_was_lost_modules_have_the_time_to_say_which_calls_they_run(
    lost: bool, tmp_path: Path
) -> None:
    path = tmp_path / "journal.sqlite"
    if lost:
        path.write_bytes(b"no journal" * 1000)
    with contextlib.closing(Journal(path)) as journal:
        journal.open()
        ledger = Ledger(JournalBroadcast(journal))
        ledger.restore()
        for waits_s in (ALIVE_S if lost else 0.0, 0.0):
            began = clock.monotonic()
            await ledger.until_all_are_known()
            assert clock.monotonic() - began == pytest.approx(waits_s)


def test_what_a_caller_asks_for_when_a_link_is_cut_is_kept_in_the_journal() -> None:
    call = CallState(call_id="c1", skill="follow", module="worker", caller="agent", asked_on_loss="continue")
    assert CallState.from_row(call.row()).asked_on_loss == "continue"


def test_the_journal_keeps_of_a_call_what_outlives_the_bridge() -> None:
    call = CallState(call_id="c1", skill="follow", module="worker", caller="agent", lease_wait_s=3.0, closing=True)
    seen = call.view().model_dump(mode="json")
    record = json.loads(call.row().record)
    assert {name: record.pop(name) for name in seen} == seen
    assert record == {
        "key": None,
        "number": 0,
        "events_from": 0,
        "by_agent": False,
        "journalled": True,
        "asked_on_loss": None,
        "instance": "",
        "overruled": {},
    }


@pytest.mark.virtual_time
async def test_only_listeners_have_the_events_of_a_call_that_is_not_journalled() -> None:
    heard: list[tuple[str, int, int]] = []
    with contextlib.closing(Journal()) as journal:
        journal.open()
        ledger = Ledger(JournalBroadcast(journal))
        ledger.begin(CallState(call_id="c1", skill="report", module="agent", caller="monitor", journalled=False))
        ledger.enter([event(1, "open", call_id="other")])
        first = ledger.listen_unjournalled(lambda offset, event: heard.append(("first", offset, event.seq)))
        ledger.listen_unjournalled(lambda offset, event: heard.append(("second", offset, event.seq)))
        ledger.enter([event(1, "open")])
        first()
        first()
        ledger.enter([event(2, "update")])
        assert heard == [("first", 1, 1), ("second", 1, 1), ("second", 1, 2)]
        assert journal.last_offset == 1


def test_how_far_a_call_that_is_not_journalled_has_got_is_known_after_a_restart() -> None:
    with contextlib.closing(Journal()) as journal:
        journal.open()
        ledger = Ledger(JournalBroadcast(journal))
        ledger.begin(CallState(call_id="c1", skill="report", module="agent", caller="monitor", journalled=False))
        ledger.enter([event(1, "open")])
        ledger.enter([event(2), event(3)])
        ledger = Ledger(JournalBroadcast(journal))
        ledger.restore()
        assert ledger.resume("c1").delivered == 3, "or its receiver would ask for what nobody keeps"


def _out_of_memory(*args: object) -> None:
    raise MemoryError


def test_a_call_that_the_journal_could_not_take_holds_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(Journal()) as journal:
        journal.open()
        ledger = Ledger(JournalBroadcast(journal))
        monkeypatch.setattr(tables, "write", _out_of_memory)
        with pytest.raises(MemoryError):
            ledger.begin(CallState(call_id="c1", skill="follow", module="worker", caller="me", resources=("base",)))
        assert (ledger.calls.open, ledger.leases.holders()) == ([], {})


@pytest.mark.virtual_time
@pytest.mark.parametrize("ends", [False, True])
async def test_a_reader_that_fails_keeps_neither_the_other_readers_nor_the_call_from_an_event(ends: bool) -> None:
    journal = Journal()
    journal.open()
    broadcast = JournalBroadcast(journal)
    ledger = Ledger(broadcast)
    ledger.enter([event(1, "open"), event(2, "update", text="answer")])

    def fail(page: list[EncodedEntry]) -> bool:
        raise RuntimeError("the connection is gone")

    pages = [asyncio.create_task(broadcast.reader(take=take).page()) for take in (fail, None)]
    await asyncio.sleep(0)
    ledger.enter([event(3, "close" if ends else "progress", text="a", data={"outcome": "completed"} if ends else {})])
    assert [[entry.offset for entry in await page] for page in pages] == [[3], [3]]
    (call,) = ledger.calls
    assert (call.text, call.last_seq, call.state) == ("a", 3, "closed" if ends else "open")
    broadcast.close()
    journal.close()


@pytest.mark.virtual_time
@pytest.mark.parametrize("ends", [False, True])
async def test_what_was_journalled_and_comes_again_is_there_once(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a failure behind the journal: readers find it at its offset, and the call has it."""
    journal = Journal()
    journal.open()
    broadcast = JournalBroadcast(journal)
    ledger = Ledger(broadcast)
    ledger.enter([event(1, "open"), event(2, "update", text="answer")])
    reader = broadcast.reader()
    async with _delivering(ledger) as (batch, acknowledged):
        monkeypatch.setattr(BroadcastReader, "offer", _out_of_memory)
        batch.events.append(event(3, "close" if ends else "progress", text="a", data={"outcome": "completed"}))
        batch.hand_over()
        assert acknowledged == []
        monkeypatch.undo()
        await until(lambda: acknowledged)
        (call,) = ledger.calls
        assert (call.text, call.last_seq, call.closed.is_set()) == ("a", 3, ends)
        assert [entry.offset for entry in await reader.page()] == [journal.last_offset] == [3]
        broadcast.close()


@pytest.mark.virtual_time
async def test_calls_that_nobody_has_begun_are_among_those_that_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.ledger.MAX_OPEN", 1)
    with contextlib.closing(Journal()) as journal:
        journal.open()
        ledger = Ledger(JournalBroadcast(journal))
        for call_id in ("c1", "c2"):
            ledger.enter([event(1, "open", call_id=call_id)])
        assert [call.call_id for call in ledger.calls] == ["c1"]


def test_calls_that_others_have_begun_push_none_out_that_an_agent_may_take_back() -> None:
    calls = Calls(keep_closed=2)
    for call_id, by_agent in (("own", True), ("a", False), ("b", False), ("c", False)):
        call = CallState(
            call_id=call_id, skill="go", module="legs", caller=call_id, state="closed", by_agent=by_agent
        )
        calls.close(call)
    assert [call_id for call_id in ("own", "a", "b", "c") if calls.get(call_id)] == ["own", "b", "c"]


def test_events_that_name_their_call_otherwise_reach_those_who_read_its_caller() -> None:
    with contextlib.closing(Journal()) as journal:
        journal.open()
        ledger = Ledger(JournalBroadcast(journal))
        ledger.begin(CallState(call_id="c1", skill="follow", module="worker", caller="agent"))
        ledger.enter([event(1, "open", caller="")])
        ledger.enter([event(2, "update")])
        ledger.enter([event(3, caller=""), replace(event(4), skill="fly"), event(5, "close", caller="somebody else")])
        kept = journal.read(Query(0, caller="agent"), 10, 1 << 20).entries
        assert [(entry.event.seq, entry.event.skill, entry.event.caller) for entry in kept] == [
            (seq, "follow", "agent") for seq in range(1, 6)
        ]


def test_the_reason_for_which_a_failed_call_was_to_end_outlasts_its_close() -> None:
    call = CallState.from_event(event(1, "open"))
    call.apply(event(1, "open"))
    assert "to_end" not in call.row().record
    call.apply(event(2, "close", text="jammed", data={"outcome": "failed", "to_end": "enough"}))
    assert CallState.from_row(call.row()).view().close_data() == {"outcome": "failed", "to_end": "enough"}
    assert CallState.from_view(call.view()).to_end == "enough"
    call.apply(event(3, "close", data={"outcome": "failed", "to_end": ["no reason"]}))
    assert call.to_end is None
