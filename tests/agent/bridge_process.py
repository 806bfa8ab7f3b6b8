"""A bridge alone in a process, to be killed: ``python -m tests.agent.bridge_process BUS PORT JOURNAL``."""

from __future__ import annotations

import asyncio
import sys

from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import create_bus
from dimos_streams.runtime.module_host import ModuleHost


async def main(bus_url: str, port: int, journal: str) -> None:
    bus = create_bus(bus_url)
    await bus.open()
    host = ModuleHost(bus)
    await host.start(Bridge({"port": port, "journal": journal}, name="bridge"), {})
    await host.wait_for_failure()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
