"""A recorder in a process of its own, to be killed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dimos_streams.bus import create_bus
from dimos_streams.recording.recorder import RecordingOptions, recording


def record_for_ever(bus_url: str, path: Path) -> None:
    """For ``Process(target=…)``."""
    asyncio.run(_record(bus_url, path))


async def _record(bus_url: str, path: Path) -> None:
    bus = create_bus(bus_url)
    await bus.open()
    async with recording(bus, RecordingOptions(path=path, append=True)):
        await asyncio.get_running_loop().create_future()
