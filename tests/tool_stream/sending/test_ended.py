"""Which ended calls a publisher keeps until somebody acknowledges them."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.sending.call_writer import PublisherLimits
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher
from dimos_streams.tool_stream.wire.unpacking import unpack_event


@pytest.mark.virtual_time
async def test_calls_that_could_not_begin_push_out_no_close_of_another_one() -> None:
    bus = create_bus("memq://")
    await bus.open()
    publisher = ToolStreamPublisher(bus, PublisherLimits(closed_calls=3))

    def end(call_id: str, outcome: Outcome) -> None:
        writer = publisher.begin(call_id, module="m", skill="s", caller="c", text="", data={})
        writer.close(outcome, "", {})

    end("real", Outcome.COMPLETED)
    for number in range(10):
        end(f"forged{number}", Outcome.REJECTED)
    assert [call_id for call_id, _ in publisher.heartbeat_calls("m")] == ["real", "forged8", "forged9"]
    for number in range(3):
        end(f"later{number}", Outcome.FAILED)
    assert [call_id for call_id, _ in publisher.heartbeat_calls("m")] == ["later0", "later1", "later2"]
    await bus.close()


@pytest.mark.virtual_time
async def test_who_asks_again_for_a_call_that_has_ended_hears_how() -> None:
    bus, heard = create_bus("memq://"), list[str]()
    await bus.open()
    publisher = ToolStreamPublisher(bus)
    publisher.begin("call", module="m", skill="s", caller="c", text="", data={}).close(Outcome.COMPLETED, "", {})
    bus.subscribe(EVENTS, lambda channel, data: heard.append(unpack_event(data).type))
    publisher.repeat("call")
    publisher.repeat("another")
    await asyncio.sleep(1.0)
    assert heard == ["close"]
    await bus.close()
