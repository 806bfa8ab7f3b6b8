"""Hostile logs: what is remembered of them is bounded, and what is read again is not counted again."""

from __future__ import annotations

import asyncio
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from dimos_streams.recording import call_events
from dimos_streams.recording.call_events import InOrder
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.packing import pack_event
from dimos_streams.viewer.bus import ReplayBus
from dimos_streams.viewer.index import Index
from dimos_streams.viewer.playback import Playback
from dimos_streams.viewer.state.world import MAX_CHANNELS, MAX_OPEN, RecordedWorld
from tests.recording.logs import START, write_log
from tests.viewer.open_recordings import indexed


def event(call: int, seq: int = 1, type: EventType = "open") -> ToolEvent:
    return ToolEvent(
        utime=START, call_id=f"call{call}", seq=seq, type=type, module="worker", skill="follow", caller="me", text=""
    )


def test_calls_that_never_end_are_bounded_and_who_was_forgotten_goes_on_behind_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_events, "_MAX_OPEN", 100)
    order = InOrder()
    for call in range(1000):
        assert order.take(START, event(call)) == [event(call)]
    assert len(order._whole) == 100
    assert order.take(START, event(999, 2, "update")) == [event(999, 2, "update")]
    assert order.take(START, event(3, 2, "update")) == [], "of which nobody knows any more what was before"
    gap, update = order.due(START + call_events.MAX_LATENESS_US + 1)
    assert (gap.type, gap.data) == ("gap", {"from_seq": 1, "to_seq": 1})
    assert update == event(3, 2, "update")


def test_events_that_are_a_little_late_again_and_again_are_neither_gaps_nor_repeated() -> None:
    order = InOrder()
    seqs = [2, *(seq for later in range(4, 200, 2) for seq in (later, later - 3))]
    taken = [
        each
        for number, seq in enumerate(seqs)
        for each in order.take(START + number * 100_000, event(0, seq, "update"))
    ]
    taken += order.rest()
    assert [(each.type, each.seq) for each in taken[:-2]] == [("update", seq) for seq in range(1, 197)]
    assert (order.gaps, order.repeated) == (1, 0), "the last one never came"


def test_each_hole_is_waited_for_since_the_event_behind_it_came() -> None:
    order, late = InOrder(), call_events.MAX_LATENESS_US
    for seq, after in ((2, 0), (4, 2_000_000)):
        assert order.take(START + after, event(0, seq, "update")) == []
    assert order.take(START + 1_000_000, event(1, 2, "update")) == []
    assert [(each.call_id, each.seq) for each in order.due(START + late + 1)] == [("call0", 1), ("call0", 2)]
    assert [each.call_id for each in order.due(START + late + 1_000_001)] == ["call1", "call1"]
    assert order.due(START + late + 2_000_000) == []
    assert [each.seq for each in order.due(START + late + 2_000_001)] == [3, 4]


def test_what_is_remembered_of_waiting_is_bounded_while_the_clock_of_a_log_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_events, "_MAX_WAITING", 100)
    order = InOrder()
    for seq in range(2, 4000, 2):
        order.take(START, event(0, seq + 2, "update"))
        order.take(START, event(0, seq - 1, "update"))
        order.take(START, event(0, seq, "update"))
    assert len(order._since) <= 200


@pytest.mark.slow
def test_many_holes_are_gone_over_in_their_order() -> None:
    order, count = InOrder(), 3 * call_events._MAX_WAITING
    handed_on = [each for seq in range(2, 2 * count, 2) for each in order.take(START, event(0, seq, "update"))]
    handed_on += order.rest()
    assert [each.seq for each in handed_on] == list(range(1, 2 * count - 1))
    assert [each.type for each in handed_on[:4]] == ["gap", "update", "gap", "update"]
    assert order.gaps == count - 1


def test_moments_that_are_kept_share_what_has_not_changed() -> None:
    world = RecordedWorld()
    for call in range(MAX_OPEN):
        world.hear(call + 1, event(call))
    tracemalloc.start()
    kept = [world.copy() for _ in range(200)]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 200 * MAX_OPEN * 100, "bytes: so much do the tables take, and not the calls"
    world.hear(MAX_OPEN + 1, replace(event(5, 2, "update"), text="later"))
    kept[0].hear(MAX_OPEN + 1, replace(event(5, 2, "update"), text="there"))
    said = [each.call("call5") for each in (world, kept[0], kept[1])]
    assert [call and call.text for call in said] == ["later", "there", ""]


def test_what_is_read_again_is_not_counted_again(tmp_path: Path) -> None:
    async def scenario(index: Index) -> None:
        bus = ReplayBus()
        await bus.open()
        playback = Playback(index, bus)
        for moment in (end, START, end):
            playback.show(moment)
        assert index.unreadable == dict.fromkeys(channels, 3)
        assert [call.call_id for call in playback.world.open_calls()] == ["call0"]
        await bus.close()

    channels = ("/module_status#dimos_streams.ModuleStatus", EVENTS)
    events = [(START + 1000 * number, channel, b"nonsense") for number, channel in enumerate(channels * 3)]
    end = START + 1_000_000
    with indexed(write_log(tmp_path / "a.lcmlog", [*events, (end, EVENTS, pack_event(event(0)))])) as index:
        asyncio.run(scenario(index))


def test_channels_without_end_are_bounded(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "a.lcmlog",
        [(START + number, f"/x{number}#std_msgs.Bool", b"") for number in range(MAX_CHANNELS + 9)],
    )
    with indexed(log) as index:
        assert len(index.channels) == MAX_CHANNELS
