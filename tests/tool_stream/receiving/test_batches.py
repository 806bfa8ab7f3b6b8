"""How many events a receiver hands over together: all that waits, within bounds, and one that comes alone at once."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.wire.packing import EventPacker
from tests.helpers import anybody

pytestmark = [pytest.mark.feature("A6"), pytest.mark.virtual_time]


@pytest.mark.parametrize(
    ("count", "size", "batches"), [(1, 10, [1]), (100, 10, [100]), (300, 10, [128, 128, 44]), (20, 40_000, [7, 7, 6])]
)
async def test_what_has_come_in_together_is_handed_over_together_and_no_time_passes(
    count: int, size: int, batches: list[int]
) -> None:
    bus = create_bus("memq://")
    await bus.open()
    handed: list[tuple[int, float]] = []

    def deliver(events: list[ToolEvent]) -> None:
        handed.append((len(events), clock.monotonic() - begin))

    receiver = ToolStreamReceiver(bus, deliver, may_open=anybody)
    receiver.start()
    begin, packer = clock.monotonic(), EventPacker("call", "m", "s", "c", "mine")
    for seq in range(1, count + 1):
        bus.publish(EVENTS, packer.pack(1, seq, "open" if seq == 1 else "update", "x" * size, {}))
    await asyncio.sleep(1)
    receiver.stop()
    await bus.close()
    assert handed == [(number, 0) for number in batches]
