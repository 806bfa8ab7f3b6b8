"""A receiver that has stopped says nothing more and leaves no timer, whatever it is told, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS, NACK, REQUESTS
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.wire.packing import EventPacker
from tests.helpers import anybody

pytestmark = [pytest.mark.feature("A6"), pytest.mark.virtual_time]


async def test_a_heartbeat_after_the_end_is_not_acknowledged() -> None:
    bus = create_bus("memq://")
    await bus.open()
    requests: list[bytes] = []
    bus.subscribe(REQUESTS, lambda _, data: requests.append(data))
    receiver = ToolStreamReceiver(bus, lambda events: None, may_open=anybody)
    receiver.start()
    bus.publish(EVENTS, EventPacker("call", "m", "s", "c", "mine").pack(1, 1, "open", "", {}))
    await asyncio.sleep(0.1)
    receiver.stop()
    receiver.stop()
    heard = len(requests)
    assert heard == 1
    status = ModuleStatus(module="m", instance="mine", call_ids=["call", "other"], last_seqs=[5, 5])
    receiver.on_status(status)
    await asyncio.sleep(1.0)
    assert len(requests) == heard
    await bus.close()


async def test_what_could_not_be_delivered_at_the_end_is_not_tried_again() -> None:
    bus = create_bus("memq://")
    await bus.open()
    tried: list[int] = []

    def deliver(events: list[ToolEvent]) -> None:
        tried.append(len(events))
        raise OSError("no room")

    receiver = ToolStreamReceiver(bus, deliver, may_open=anybody)
    receiver.start()
    bus.publish(EVENTS, EventPacker("call", "m", "s", "c", "mine").pack(1, 1, "open", "", {}))
    await asyncio.sleep(0.02)
    receiver.stop()
    at_the_end = len(tried)
    assert at_the_end > 1
    receiver.stop()
    await asyncio.sleep(1.0)
    assert len(tried) == at_the_end
    await bus.close()


async def test_what_is_delivered_at_the_end_is_acknowledged_before_the_bus_can_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus = create_bus("memq://")
    await bus.open()
    is_full = True

    def deliver(events: list[ToolEvent]) -> None:
        if is_full:
            raise OSError("no room")

    receiver = ToolStreamReceiver(bus, deliver, may_open=anybody)
    receiver.start()
    bus.publish(EVENTS, EventPacker("call", "m", "s", "c", "mine").pack(1, 1, "open", "", {}))
    await asyncio.sleep(0.02)
    published: list[str] = []
    monkeypatch.setattr(bus, "publish", lambda channel, data: published.append(channel))
    is_full = False
    receiver.stop()
    assert published == [REQUESTS]
    await asyncio.sleep(1.0)
    assert published == [REQUESTS]
    await bus.close()


@pytest.mark.parametrize("is_known", [True, False])
async def test_what_does_not_speak_for_its_module_says_nothing_of_others_calls(is_known: bool) -> None:
    bus = create_bus("memq://")
    await bus.open()
    asked: set[int] = set()

    def note(channel: str, data: bytes) -> None:
        request = decode(ToolStreamRequest, data, channel=channel)
        if request.kind == NACK:
            asked.add(request.to_seq)

    bus.subscribe(REQUESTS, note)
    receiver = ToolStreamReceiver(bus, lambda events: None, may_open=anybody)
    receiver.start()
    if is_known:
        bus.publish(EVENTS, EventPacker("call", "m", "s", "c", "mine").pack(1, 1, "open", "", {}))
        await asyncio.sleep(0.1)
    receiver.on_status(ModuleStatus(module="m", instance="mine", call_ids=["call"], last_seqs=[2]))
    for active in (False, True) if is_known else (False,):
        other = ModuleStatus(module="m", instance="other", call_ids=["call"], last_seqs=[9])
        receiver.on_status(other, active=active)
    await asyncio.sleep(1.0)
    assert asked == {2}
    receiver.stop()
    await bus.close()
