"""Two runs of one blueprint on one bus: which of them goes on."""

from __future__ import annotations

import asyncio
import os

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.runtime.neighbours import Neighbours
from dimos_streams.tool_stream.event import STATUS

HOST = os.uname().nodename


@pytest.mark.virtual_time
async def test_the_run_whose_first_module_began_first_goes_on_whichever_rivals_are_seen() -> None:
    """One run began with `a`, the other with `b`: of `b` alone the younger run has the elder instance."""
    bus = create_bus("memq://")
    await bus.open()
    neighbours = Neighbours(bus, ["a", "b"])
    neighbours._directory.start()

    async def beat() -> None:
        while True:
            for module, pid, began in (("a", 1, 1), ("b", 1, 4), ("b", 2, 3)):
                status = ModuleStatus(module=module, instance=f"{pid}{module}", pid=pid, started_utime=began)
                status.host, status.health, status.skills_version = HOST, "ok", "none"
                bus.publish(STATUS, encode(status))
            await asyncio.sleep(0.2)

    beating = asyncio.create_task(beat())
    assert await neighbours.meet(lambda: [1]) == ""
    assert "module 'a' runs already on" in await neighbours.meet(lambda: [2])
    beating.cancel()
    await neighbours.close()
