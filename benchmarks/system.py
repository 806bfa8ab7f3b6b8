"""The whole system as real processes, and what one agent's queue gets of it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.result import Arrivals, Result
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions
from dimos_streams.testing import FaultInjection, Faults
from tests.ports import free_bus, free_port

_CALLER = "benchmark"
_READY_S = 60.0
SEND_TIMEOUT_S = 2.0
"""After so long a client that does not read is cut off; short, for the benchmark's sake."""


@dataclass(frozen=True, slots=True)
class System:
    """A source of updates and a bridge, each a process, with the journal on disk."""

    gateway: HttpGateway
    supervisor: Supervisor
    port: int

    async def measure(self, name: str, *, count: int, rate_hz: float = 0.0, calls: int = 1, size: int = 0) -> Result:
        """Updates of concurrent calls, ``count`` each, up to the agent's queue."""
        listening = asyncio.create_task(self.listen(await self.gateway.offset(), calls))
        await self.call(count=count, rate_hz=rate_hz, calls=calls, size=size)
        return Result.of(name, count * calls, await listening)

    async def call(self, *, count: int, rate_hz: float, calls: int = 1, size: int = 0) -> None:
        """Begin calls; returns when they were taken."""
        arguments = {"count": count, "rate_hz": rate_hz, "size": size}
        await asyncio.gather(*(self.gateway.call("stream", arguments, caller=_CALLER) for _ in range(calls)))

    def bridge_memory_mb(self) -> float:
        """The resident memory of the bridge's process in MB."""
        pid = next(view.pid for view in self.supervisor.processes() if view.label == "bridge")
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * 4096 / 1e6

    async def listen(self, offset: int, calls: int) -> Arrivals:
        """The events behind an offset until so many calls are closed."""
        latencies: list[int] = []
        numbers: dict[str, list[int]] = defaultdict(list)
        first = last = 0
        async for entry in self.gateway.events(after=offset, caller=_CALLER):
            now, event = time.time_ns() // 1000, entry.event
            if event.type == "update":
                first, last = first or now, now
                latencies.append(now - event.utime)
                numbers[event.call_id].append(event.data["number"])
            elif event.type == "close":
                calls -= 1
                if calls == 0:
                    break
        return Arrivals(numbers=list(numbers.values()), latencies_us=latencies, first_us=first, last_us=last)


@contextlib.asynccontextmanager
async def running(
    *, loss: float = 0.0, fill: Callable[[Path], None] | None = None, token: str | None = None
) -> AsyncIterator[System]:
    """The system on a bus of its own. Each process loses a part of the datagrams that it sends.

    ``fill`` writes the journal that the bridge begins with.
    """
    port = free_port()
    blueprint = Blueprint(
        name="benchmark",
        modules={
            "source": ModuleSpec(name="source", type="benchmarks.source:Source"),
            "bridge": ModuleSpec(
                name="bridge",
                type="dimos_streams.bridge.module:Bridge",
                config={"port": port, "send_timeout_s": SEND_TIMEOUT_S},
            ),
        },
    )
    with tempfile.TemporaryDirectory() as directory:
        faults = FaultInjection(Faults(loss=loss)) if loss else None
        if fill is not None:
            await asyncio.to_thread(fill, Path(directory) / "journal.sqlite")
        options = RunOptions(bus_url=free_bus(), port=port, run_dir=Path(directory), wrap_bus=faults, token=token)
        supervisor = Supervisor(blueprint, options)
        gateway = HttpGateway(options.bridge_url, rng=random.Random(0), token=token)
        try:
            await supervisor.start()
            async with asyncio.timeout(_READY_S):
                while not await gateway.skills():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            system = System(gateway, supervisor, port)
            await system.measure("warm up", count=200, rate_hz=200.0)
            yield system
        finally:
            gateway.close()
            await supervisor.stop()
