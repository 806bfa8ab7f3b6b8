"""Which ended calls a publisher keeps until somebody acknowledges them."""

from __future__ import annotations

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.sending.call_writer import PublisherLimits
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher


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
