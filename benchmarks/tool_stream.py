"""How long an update takes from a skill to an agent's queue, and how many go through in a burst.

    python -m benchmarks.tool_stream [--json]

Real processes: skill → LCM multicast → bridge with its journal on disk → SSE → client → asyncio queue. Latency is the
event's own time stamp against the clock at its arrival, on one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from dimos_streams.agent.http_gateway import HttpGateway
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.supervisor import Supervisor

_CALLER = "benchmark"


def _free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _blueprint(port: int) -> Blueprint:
    specs = [
        ModuleSpec(name="source", type="benchmarks.source:Source"),
        ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge", config={"port": port}),
    ]
    return Blueprint(name="benchmark", modules={spec.name: spec for spec in specs})


async def _measure(gateway: HttpGateway, count: int, rate_hz: float) -> dict[str, Any]:
    """Latencies in ms of all updates of one call, and the rate at which they came."""
    place = await gateway.place()
    latencies: list[float] = []
    order: list[int] = []
    arrivals: list[int] = []

    async def listen() -> None:
        async for placed in gateway.events(after=place, caller=_CALLER):
            now = time.time_ns() // 1000
            if placed.event.type == "update":
                latencies.append((now - placed.event.utime) / 1000)
                order.append(placed.event.data["number"])
                arrivals.append(now)
            elif placed.event.type == "close":
                return

    listening = asyncio.create_task(listen())
    await gateway.call("stream", {"count": count, "rate_hz": rate_hz}, caller=_CALLER)
    await listening
    ranked = sorted(latencies)
    return {
        "rate_hz": rate_hz,
        "sent": count,
        "received": len(latencies),
        "in_order": order == list(range(count)),
        "p50_ms": round(statistics.median(ranked), 3),
        "p99_ms": round(ranked[int(len(ranked) * 0.99)], 3),
        "max_ms": round(ranked[-1], 3),
        "events_per_s": round(len(arrivals) / max(1e-6, (arrivals[-1] - arrivals[0]) / 1e6)),
    }


async def _run(rounds: int) -> list[dict[str, Any]]:
    port = _free_port()
    bus = f"udpm://239.255.76.{random.SystemRandom().randint(1, 254)}:{_free_port(socket.SOCK_DGRAM)}?ttl=0"
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        options = RunOptions(bus_url=bus, port=port, run_dir=Path(directory))
        supervisor = Supervisor(_blueprint(port), options)
        await supervisor.start()
        gateway = HttpGateway(options.bridge_url, rng=random.Random(0))
        try:
            while not await gateway.skills():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await _measure(gateway, 200, 200.0)
            for count, rate in ((500, 100.0), (1000, 200.0), (20_000, 0.0)):
                measured = [await _measure(gateway, count, rate) for _ in range(rounds)]
                rows.append(sorted(measured, key=lambda row: float(row["p50_ms"]))[len(measured) // 2])
        finally:
            gateway.close()
            await supervisor.stop()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print numbers only")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each row; the median one is shown")
    arguments = parser.parse_args()
    rows = asyncio.run(_run(arguments.rounds))
    if arguments.json:
        print(json.dumps(rows))
        return
    columns = list(rows[0])
    print("  ".join(f"{column:>12}" for column in columns))
    for row in rows:
        print("  ".join(f"{row[column]!s:>12}" for column in columns))


if __name__ == "__main__":
    main()
