"""When a receiver acknowledges: behind whoever waits for the events, and at most 10 ms later."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.bus import Bus, create_bus
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ToolStreamRequest
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.protocol.channels import ACK, EVENTS, NACK, REQUESTS
from dimos_streams.tool_stream.receiving import requests as requesting
from dimos_streams.tool_stream.receiving.acks import ACK_DELAY_S, ACK_EVERY
from dimos_streams.tool_stream.receiving.received_call import ResumePoint
from dimos_streams.tool_stream.receiving.received_calls import ReceivedCalls
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.receiving.requests import Requests
from dimos_streams.tool_stream.wire.packing import EventPacker
from tests.helpers import anybody

pytestmark = [pytest.mark.feature("A6"), pytest.mark.virtual_time]


async def _happens(monkeypatch: pytest.MonkeyPatch, count: int, last: EventType) -> list[tuple[str, float]]:
    """What happens when so many events come at once, and how long after they came."""
    bus: Bus = create_bus("memq://")
    await bus.open()
    happened: list[tuple[str, float]] = []
    arrived, publish = asyncio.Event(), bus.publish

    def note(what: str) -> None:
        happened.append((what, round(clock.monotonic() - begin, 6)))

    def publish_noted(channel: str, data: bytes) -> None:
        if channel == REQUESTS:
            note("acknowledged")
        publish(channel, data)

    def deliver(events: list[ToolEvent]) -> None:
        note("delivered")
        arrived.set()

    async def read() -> None:
        await arrived.wait()
        note("read")

    receiver = ToolStreamReceiver(bus, deliver, may_open=anybody)
    receiver.start()
    reading = asyncio.create_task(read())
    await asyncio.sleep(1)
    monkeypatch.setattr(bus, "publish", publish_noted)
    begin, packer = clock.monotonic(), EventPacker("call", "m", "s", "c", "mine")
    for seq in range(1, count + 1):
        kind: EventType = "open" if seq == 1 else "update" if seq < count else last
        bus.publish(EVENTS, packer.pack(1, seq, kind, "", {"outcome": "completed"}))
    await asyncio.sleep(1)
    await reading
    receiver.stop()
    await bus.close()
    return happened


async def test_a_flood_of_names_keeps_nobody_from_asking_for_the_end_of_a_call_whose_module_is_known() -> None:
    bus: Bus = create_bus("memq://")
    await bus.open()
    requests = Requests(bus, "bridge")
    calls = ReceivedCalls()
    named = [calls.make(f"named{number}", ResumePoint(unsolicited=True)) for number in range(1000)]
    known = [
        calls.make(f"known{number}", ResumePoint(delivered=1, unsolicited=True, instance="mine"))
        for number in range(1000)
    ]
    assert not all(requests.nack(call, 1, 2) for call in named)
    assert requests.nack(known[0], 2, 2)
    assert not all(requests.nack(call, 2, 2) for call in known)
    await bus.close()


@pytest.mark.parametrize(("count", "last"), [(2, "close"), (ACK_EVERY, "update")])
async def test_who_waits_for_events_comes_before_their_acknowledgement(
    monkeypatch: pytest.MonkeyPatch, count: int, last: EventType
) -> None:
    happened = await _happens(monkeypatch, count, last)
    assert [what for what, _ in happened] == ["delivered", "read", "acknowledged"]
    assert all(after == 0 for _, after in happened), "no time passes"


async def test_few_events_are_acknowledged_together(monkeypatch: pytest.MonkeyPatch) -> None:
    happened = await _happens(monkeypatch, 3, "update")
    assert happened == [("delivered", 0), ("read", 0), ("acknowledged", ACK_DELAY_S)]


async def test_each_of_several_closes_is_acknowledged_at_once() -> None:
    bus: Bus = create_bus("memq://")
    await bus.open()
    receiver = ToolStreamReceiver(bus, lambda events: None, may_open=anybody)
    receiver.start()
    acknowledged: list[str] = []
    bus.subscribe(REQUESTS, lambda channel, data: acknowledged.append(decode(ToolStreamRequest, data).call_id))
    for number in range(3):
        packer = EventPacker(str(number), "m", "s", "c", "mine")
        bus.publish(EVENTS, packer.pack(1, 1, "open", "", {}))
        bus.publish(EVENTS, packer.pack(1, 2, "close", "", {"outcome": "completed"}))
        await asyncio.sleep(ACK_DELAY_S / 2)
        assert acknowledged == [str(each) for each in range(number + 1)]
    receiver.stop()
    await bus.close()


async def test_only_requests_for_calls_that_nobody_here_has_begun_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requesting, "_NACKS_PER_S", 500.0)
    bus: Bus = create_bus("memq://")
    await bus.open()
    sent: list[str] = []
    bus.subscribe(REQUESTS, lambda channel, data: sent.append(decode(ToolStreamRequest, data).kind))
    requests, calls = Requests(bus, "bridge"), ReceivedCalls()
    call = calls.make("call", ResumePoint(delivered=1))
    for _ in range(300):
        requests.ack(call)
    assert sum(requests.nack(call, 2, 2) for _ in range(600)) == 500, "so many a second of all calls together"
    await asyncio.sleep(0.1)
    assert sent == 300 * [ACK] + 500 * [NACK]
    await bus.close()
