"""What a receiver makes of the calls that heartbeats name, and of what a proxy says in their modules' stead."""

from __future__ import annotations

import asyncio
import itertools
from types import TracebackType

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.tool_stream.event import MAX_SEQ, EventType, ToolEvent
from dimos_streams.tool_stream.protocol.channels import ACK, EVENTS, NACK, REQUESTS
from dimos_streams.tool_stream.receiving.nacks import NACK_DELAYS_S
from dimos_streams.tool_stream.receiving.received_call import ResumePoint
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.wire.packing import EventPacker

pytestmark = [pytest.mark.feature("A6"), pytest.mark.virtual_time]

_PROXY = "bridge"


class _Receiving:
    """A receiver whose heartbeats and events a test makes up, and what it asks for."""

    def __init__(self, resumed: ResumePoint | None = None) -> None:
        self._bus = create_bus("memq://")
        self.delivered: list[ToolEvent] = []
        self.requests: list[ToolStreamRequest] = []
        self.wanted = True
        self.receiver = ToolStreamReceiver(
            self._bus,
            self.delivered.extend,
            may_open=lambda event: event.instance != _PROXY,
            proxy=lambda: _PROXY,
            resume=lambda call_id: resumed or ResumePoint(),
            wanted=lambda call_id: self.wanted,
        )

    async def __aenter__(self) -> _Receiving:
        await self._bus.open()
        self.receiver.start()
        self._bus.subscribe(REQUESTS, lambda channel, data: self.requests.append(decode(ToolStreamRequest, data)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.receiver.stop()
        await self._bus.close()

    async def send(self, call_id: str, seq: int, type: EventType = "update", instance: str = "mine") -> None:
        packer = EventPacker(call_id, "m", "s", "c", instance)
        data = {"outcome": "completed"} if type == "close" else {}
        self._bus.publish(EVENTS, packer.pack(1, seq, type, "", data))
        await asyncio.sleep(0.001)

    def beat(self, instance: str = "mine", **last_seqs: int) -> None:
        status = ModuleStatus(module="m", instance=instance)
        status.call_ids, status.last_seqs = list(last_seqs), list(last_seqs.values())
        self.receiver.on_status(status)

    def asked(self) -> list[tuple[str, str, int, int]]:
        """The requests for missing events: whom, for which call, and from where to where."""
        nacks = [request for request in self.requests if request.kind == NACK]
        return [(each.receiver, each.call_id, each.from_seq, each.to_seq) for each in nacks]


async def test_a_call_of_another_instance_hides_none_that_the_heartbeat_names_behind_it() -> None:
    async with _Receiving() as receiving:
        await receiving.send("theirs", 1, "open", "theirs")
        await receiving.send("own", 1, "open")
        receiving.beat(theirs=9, own=2)
        await asyncio.sleep(0.004)
        assert receiving.asked() == [("receiver@mine", "own", 2, 2)]


async def test_a_call_of_which_only_the_name_has_come_is_asked_of_the_instance_that_names_it() -> None:
    async with _Receiving() as receiving:
        receiving.beat(call=2)
        await asyncio.sleep(0.004)
        assert receiving.asked() == [("receiver@mine", "call", 1, 2)]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("last_seq", [-1, 0, MAX_SEQ + 1])
async def test_a_seq_that_no_event_has_says_nothing_of_a_call(last_seq: int, is_known: bool) -> None:
    async with _Receiving() as receiving:
        if is_known:
            await receiving.send("call", 1, "open")
            await asyncio.sleep(0.1)
        receiving.requests.clear()
        receiving.beat(call=last_seq)
        await asyncio.sleep(0.1)
        assert receiving.asked() == []
        assert [request.kind for request in receiving.requests] == ([ACK] if is_known else [])


async def test_what_a_heartbeat_has_named_is_still_missing_behind_an_event_that_comes_after_it() -> None:
    async with _Receiving() as receiving:
        receiving.beat(call=4)
        await receiving.send("call", 1, "open")
        await receiving.send("call", 2)
        await asyncio.sleep(0.004)
        assert [asked[2:] for asked in receiving.asked()] == [(3, 4)]


async def test_a_first_event_of_the_proxy_makes_no_call_its_own() -> None:
    async with _Receiving() as receiving:
        await receiving.send("call", 2, "update", _PROXY)
        await asyncio.sleep(0.004)
        assert [asked[0] for asked in receiving.asked()] == ["receiver"], "nobody knows yet whose it is"
        await receiving.send("call", 1, "open", _PROXY)
        await receiving.send("call", 3)
        await receiving.send("call", 4, "update", "somebody else")
        assert [event.seq for event in receiving.delivered] == [1, 2, 3]


async def test_what_the_proxy_has_said_too_early_is_kept_when_it_is_known_whose_call_it_is() -> None:
    async with _Receiving() as receiving:
        await receiving.send("call", 2, "close", _PROXY)
        await receiving.send("call", 1, "open")
        assert [(event.seq, event.type) for event in receiving.delivered] == [(1, "open"), (2, "close")]
        assert receiving.asked() == []


async def test_a_close_by_the_proxy_comes_behind_all_that_was_delivered_and_once() -> None:
    async with _Receiving() as receiving:
        await receiving.send("call", 1, "open")
        await receiving.send("call", 2)
        for _ in range(2):
            await receiving.send("call", 2, "close", _PROXY)
        assert [(event.seq, event.type) for event in receiving.delivered[1:]] == [(2, "update"), (3, "close")]


async def test_what_was_kept_of_a_call_before_its_instance_was_known_counts_as_refused() -> None:
    async with _Receiving() as receiving:
        await receiving.send("call", 3, "update", "somebody else")
        assert receiving.receiver.statistics().refused == 0
        await receiving.send("call", 1, "open")
        assert receiving.receiver.statistics().refused == 1


async def test_each_gap_of_a_call_says_whose_it_is_as_soon_as_that_is_known() -> None:
    async with _Receiving(ResumePoint(delivered=1)) as receiving:
        receiving.beat(call=2)
        await asyncio.sleep(5.0)
        await receiving.send("call", 3)
        await receiving.send("call", 5)
        await asyncio.sleep(5.0)
        gaps = [event for event in receiving.delivered if event.type == "gap"]
        assert [(gap.module, gap.skill, gap.caller) for gap in gaps] == [("m", "", ""), ("m", "s", "c")]


async def test_a_call_that_has_begun_is_received_to_its_end_though_it_would_not_be_wanted_any_more() -> None:
    async with _Receiving() as receiving:
        await receiving.send("call", 1, "open")
        receiving.wanted = False
        await receiving.send("call", 2, "close")
        await receiving.send("other", 1, "open")
        assert [(event.call_id, event.seq) for event in receiving.delivered] == [("call", 1), ("call", 2)]


async def test_of_a_call_that_somebody_else_closes_all_is_acknowledged_that_its_module_may_say() -> None:
    async with _Receiving() as receiving:
        await receiving.send("call", 1, "open")
        receiving.receiver.finish("call")
        await receiving.send("call", 2)
        await asyncio.sleep(0.1)
        assert receiving.requests[-1].to_seq > MAX_SEQ


async def test_what_comes_again_of_a_call_that_was_closed_before_a_restart_is_acknowledged() -> None:
    async with _Receiving(ResumePoint(delivered=2, closed=True)) as receiving:
        await receiving.send("call", 2, "close")
        await asyncio.sleep(0.1)
        assert [request.kind for request in receiving.requests] == [ACK]


async def test_what_has_come_too_early_twice_counts_once() -> None:
    async with _Receiving() as receiving:
        for seq in (1, 3, 5, 5):
            await receiving.send("call", seq, "open" if seq == 1 else "update")
        assert receiving.receiver.statistics().duplicates == 1
        for seq in (2, 4):
            await receiving.send("call", seq)
        assert [event.seq for event in receiving.delivered] == [1, 2, 3, 4, 5]
        asked = len(receiving.requests)
        await asyncio.sleep(1.0)
        assert [request.kind for request in receiving.requests[asked:]] == [ACK]


async def test_a_missing_event_is_asked_for_though_others_come_all_the_time() -> None:
    async with _Receiving() as receiving:
        await receiving.send("call", 1, "open")
        for seq in range(3, 9):
            await receiving.send("call", seq)
        assert [asked[2:] for asked in receiving.asked()] == [(2, 2)]


async def test_pauses_between_requests_grow_from_the_shortest_to_the_longest() -> None:
    async with _Receiving() as receiving:
        await receiving.send("call", 2)
        await asyncio.sleep(5.0)
        utimes = [request.utime for request in receiving.requests if request.kind == NACK]
        pauses = [round((after - before) / 1e6, 4) for before, after in itertools.pairwise(utimes)]
        assert pauses == list(NACK_DELAYS_S[: len(pauses)])
        assert len(pauses) == len(NACK_DELAYS_S) - 1


async def test_each_hole_of_a_call_is_asked_for_as_often_as_the_first_one() -> None:
    async with _Receiving() as receiving:
        await receiving.send("call", 1, "open")
        asked: list[int] = []
        for seq in (3, 5, 7):
            receiving.requests.clear()
            await receiving.send("call", seq)
            await asyncio.sleep(5.0)
            asked.append(len(receiving.asked()))
        assert asked == [asked[0]] * 3
        assert asked[0] > 10
