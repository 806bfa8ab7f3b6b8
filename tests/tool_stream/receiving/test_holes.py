"""What a receiver does about events that never come, and what it leaves behind when it stops or is told to."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import EventType, Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS, REQUESTS
from dimos_streams.tool_stream.receiving import received_calls
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.helpers import anybody
from tests.tool_stream.ends import Ends, bus_and_ends

GIVEN_UP_S = 3.5
"""By then a receiver has given up what nobody sends again."""


def send(ends: Ends, call_id: str, *seqs: int, type: EventType = "update", size: int = 0) -> None:
    """Events of a call of which no publisher knows."""
    for seq in seqs:
        first: EventType = "open" if seq == 1 else type
        event = ToolEvent(
            utime=1, call_id=call_id, seq=seq, type=first, module="m", skill="s", caller="c", text="",
            data={"outcome": "completed", "of": "x" * size},
        )  # fmt: skip
        ends.sender_bus.publish(EVENTS, pack_event(event))


def gone(ends: Ends, call_id: str, first: int, last: int) -> None:
    """The answer that events are not kept any more."""
    answer = ToolStreamRequest(kind="gone", call_id=call_id, receiver="receiver", from_seq=first, to_seq=last)
    ends.sender_bus.publish(REQUESTS, encode(answer))


def delivered(ends: Ends, call_id: str) -> list[object]:
    """Seqs, and for a gap the first and the last that it stands for."""
    return [
        (event.data["from_seq"], event.data["to_seq"]) if event.type == "gap" else event.seq
        for event in ends.delivered[call_id]
    ]


async def flooded(ends: Ends, seconds: int) -> None:
    """Once a second more comes than there is room for."""
    for _ in range(seconds):
        await asyncio.sleep(0.5)
        send(ends, "flood", *range(2, 90), size=25_000)
        await asyncio.sleep(0.5)


class Asked:
    """The requests of all receivers, by kind and call."""

    def __init__(self, ends: Ends) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        ends.sender_bus.subscribe(REQUESTS, self._note)

    def _note(self, channel: str, data: bytes) -> None:
        request = decode(ToolStreamRequest, data, channel=channel)
        self.counts[request.kind, request.call_id] += 1

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(sorted(self.counts))


@pytest.mark.virtual_time
async def test_each_hole_is_a_gap_of_its_own_that_says_whose_call_it_is() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        send(ends, "orphan", 3, 4, 8, 9)
        await asyncio.sleep(2 * GIVEN_UP_S)
        assert delivered(ends, "orphan") == [(1, 2), 3, 4, (5, 7), 8, 9]
        gap = ends.delivered["orphan"][0]
        assert (gap.module, gap.skill, gap.caller, gap.seq) == ("m", "s", "c", 2)
        assert gap.text == "events 1 to 2 of this call are lost"
        statistics = ends.receiver.statistics()
        assert (statistics.delivered, statistics.gaps, statistics.duplicates) == (6, 5, 0)
        send(ends, "orphan", 3, 9)
        await asyncio.sleep(0.1)
        assert ends.receiver.statistics().duplicates == 2
        assert len(ends.delivered["orphan"]) == 6


@pytest.mark.virtual_time
@pytest.mark.parametrize("known", [True, False])
async def test_what_a_heartbeat_names_and_nobody_has_is_a_gap_where_something_of_the_call_was_heard(
    known: bool,
) -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        if known:
            send(ends, "call", 1)
            await asyncio.sleep(0.1)
            ends.restart_receiver()
        ends.receiver.on_status(ModuleStatus(module="m", call_ids=["call"], last_seqs=[4]))
        await asyncio.sleep(GIVEN_UP_S)
        assert delivered(ends, "call") == ([1, (2, 4)] if known else []), "of a mere name there is nothing to say"


@pytest.mark.virtual_time
async def test_the_gap_at_a_calls_end_says_whose_call_it_is() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        send(ends, "call", 1)
        await asyncio.sleep(0.1)
        ends.receiver.on_status(ModuleStatus(module="m", call_ids=["call"], last_seqs=[4]))
        await asyncio.sleep(GIVEN_UP_S)
        assert delivered(ends, "call") == [1, (2, 4)]
        gap = ends.delivered["call"][-1]
        assert (gap.module, gap.skill, gap.caller) == ("m", "s", "c")


@pytest.mark.virtual_time
async def test_a_calls_end_is_asked_for_as_long_as_its_module_names_it() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        send(ends, "call", 1)
        heartbeat = ModuleStatus(module="m", call_ids=["call"], last_seqs=[4])
        for _ in range(40):
            ends.receiver.on_status(heartbeat)
            await asyncio.sleep(0.25)
        assert delivered(ends, "call") == [1], "nothing waits behind it: there is no hurry to give it up"
        send(ends, "call", 2, 3)
        send(ends, "call", 4, type="close")
        await asyncio.sleep(0.1)
        assert delivered(ends, "call") == [1, 2, 3, 4]
        assert ends.delivered["call"][-1].type == "close"


@pytest.mark.virtual_time
@pytest.mark.parametrize("deaf", [False, True])
async def test_a_mere_name_keeps_no_place_however_long_a_heartbeat_names_it(
    monkeypatch: pytest.MonkeyPatch, deaf: bool
) -> None:
    monkeypatch.setattr(received_calls, "MAX_NAMED", 2)
    async with await bus_and_ends(Faults(), 1) as ends:
        asked = Asked(ends)
        flood = asyncio.create_task(flooded(ends, 8 if deaf else 0))

        async def beat(seconds: float, *names: str) -> None:
            for _ in range(round(seconds / 0.25)):
                ends.receiver.on_status(ModuleStatus(module="m", call_ids=list(names), last_seqs=[1] * len(names)))
                await asyncio.sleep(0.25)

        await beat(1.0, "forged1", "forged2")
        await beat(GIVEN_UP_S, "real", "forged1", "forged2")
        assert asked.counts["repair", "real"] > 0
        send(ends, "real", 1)
        await asyncio.sleep(0.1)
        assert delivered(ends, "real") == [1]
        await flood


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_who_had_no_room_for_all_that_came_does_not_conclude_that_nobody_answers() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        send(ends, "call", 1, 3)
        await flooded(ends, 8)
        assert delivered(ends, "call") == [1], "the answer may have been in what there was no room for"
        send(ends, "call", 2)
        await asyncio.sleep(0.1)
        assert delivered(ends, "call") == [1, 2, 3]
        send(ends, "other", 1, 3)
        await flooded(ends, 16)
        assert delivered(ends, "other") == [1, (2, 2), 3], "what comes behind does not wait for ever"


@pytest.mark.virtual_time
async def test_what_has_come_is_no_part_of_what_is_gone() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        send(ends, "call", 1, 5, 9)
        await asyncio.sleep(0.1)
        gone(ends, "call", 6, 8)
        await asyncio.sleep(0.01)
        assert delivered(ends, "call") == [1], "what comes before is still to be had"
        gone(ends, "call", 2, 10)
        await asyncio.sleep(0.01)
        assert delivered(ends, "call") == [1], "more is gone than there is"
        gone(ends, "call", 2, 7)
        await asyncio.sleep(0.01)
        assert delivered(ends, "call") == [1, (2, 4), 5]
        gone(ends, "call", 2, 7)
        await asyncio.sleep(0.01)
        assert delivered(ends, "call") == [1, (2, 4), 5, (6, 7)], "it was asked for again meanwhile"
        send(ends, "call", 8)
        await asyncio.sleep(0.1)
        assert delivered(ends, "call") == [1, (2, 4), 5, (6, 7), 8, 9]


@pytest.mark.virtual_time
async def test_of_a_call_that_somebody_else_closes_nothing_is_asked_for_or_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(received_calls, "ALL_PENDING_BYTES", 1000)
    async with await bus_and_ends(Faults(), 1) as ends:
        send(ends, "call", 1, 3, size=600)
        await asyncio.sleep(0.02)
        assert ends.receiver.finish("call") == 1
        asked = ends.receiver.statistics().nacks
        assert asked > 0
        send(ends, "other", 1)
        send(ends, "other", 3, 2, size=600)
        await asyncio.sleep(0.01)
        assert delivered(ends, "other") == [1, 2, 3]
        send(ends, "call", 2, 4)
        ends.receiver.on_status(ModuleStatus(module="m", call_ids=["call"], last_seqs=[7]))
        await asyncio.sleep(GIVEN_UP_S)
        assert delivered(ends, "call") == [1]
        assert ends.receiver.statistics().nacks == asked
        assert ends.receiver.finish("unheard of") == 0


@pytest.mark.virtual_time
async def test_a_receiver_that_stops_delivers_what_is_in_hand_and_asks_for_nothing_more() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        full = True
        texts: list[str] = []

        def take(events: list[ToolEvent]) -> None:
            if full:
                raise OSError("no space left")
            texts.extend(event.text for event in events)

        receiver = ToolStreamReceiver(ends.receiver_bus, take, may_open=anybody, name="second")
        ends.receiver.stop()
        ends.heart.cancel()
        receiver.start()
        asked = Asked(ends)
        ends.begin("call").close(Outcome.COMPLETED, "the end", {})
        send(ends, "orphan", 1, 3)
        await asyncio.sleep(0.1)
        assert list(asked) == [("repair", "orphan")], "what was not taken is not acknowledged"
        full = False
        receiver.stop()
        asked.counts.clear()
        assert texts == ["", "the end", ""]
        await asyncio.sleep(GIVEN_UP_S)
        assert dict(asked.counts) == {("ack", "call"): 1, ("ack", "orphan"): 1}
        assert texts == ["", "the end", ""]


@pytest.mark.virtual_time
async def test_what_was_acknowledged_is_not_acknowledged_with_other_calls_again() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.heart.cancel()
        asked = Asked(ends)
        send(ends, "first", 1)
        await asyncio.sleep(0.1)
        for seq in range(1, 6):
            send(ends, "other", seq)
            await asyncio.sleep(0.1)
        assert asked.counts == {("ack", "first"): 1, ("ack", "other"): 5}
        send(ends, "first", 1)
        await asyncio.sleep(0.1)
        assert asked.counts["ack", "first"] == 2, "who sends something again has missed it"


@pytest.mark.virtual_time
async def test_a_close_is_acknowledged_at_once() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        asked = Asked(ends)
        ends.begin("call").close(Outcome.COMPLETED, "", {})
        await asyncio.sleep(0.002)
        assert list(asked) == [("ack", "call")]
        assert ends.publisher.heartbeat_calls("m") == []


@pytest.mark.virtual_time
async def test_a_first_event_that_is_lost_is_asked_of_the_instance_that_sent_the_next() -> None:
    """While a receiver names the instance that it asks, requests that name none are not answered."""
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.publisher.instance = "own"
        ends.begin("before")
        await asyncio.sleep(0.1)
        ends.heart.cancel()
        with ends.losing_events():
            writer = ends.begin("call")
        await writer.update("second", {})
        await asyncio.sleep(0.1)
        assert delivered(ends, "call") == [1, 2]
