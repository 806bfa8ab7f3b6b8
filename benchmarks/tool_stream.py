"""The time that an update takes from a skill to an agent's queue, and the rate of a burst.

    python -m benchmarks.tool_stream [--json] [--quick] [--single] [--rounds 3] [--peer VENV/bin/python]

Real processes: skill → LCM multicast → bridge with its journal on disk → SSE → client → asyncio queue. Latency is
the event's own time stamp against the clock at its arrival, on one machine. The floor is measured in the same round:
a bare datagram from process to process, and a bare event stream over loopback with the same parser. With --peer, a
dimos installation does the same updates in the same round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.clients import measure_clients
from benchmarks.floor import measure_floor
from benchmarks.peer import Peer, Workload
from benchmarks.result import Result, median_of
from benchmarks.system import running
from benchmarks.table import print_table
from dimos_streams.common.process.live_loop import run_live
from dimos_streams.errors import UserError
from tests.ports import free_bus

_RATES_HZ = (100.0, 200.0)
_BURST = 20_000
_CALLS = 100


async def _one_round(quick: bool, single_only: bool, peer: Peer | None) -> AsyncIterator[Result]:
    seconds = 2.0 if quick else 5.0
    single = [
        Workload(name=f"{rate_hz:g} Hz", count=round(seconds * rate_hz), rate_hz=rate_hz) for rate_hz in _RATES_HZ
    ]
    single.append(Workload(name=f"burst of {_BURST}", count=_BURST))
    for rate_hz in _RATES_HZ:
        for result in await asyncio.to_thread(measure_floor, free_bus(), round(seconds * rate_hz), rate_hz):
            yield result
    async with running() as system:
        for load in single:
            yield await system.measure(load.name, count=load.count, rate_hz=load.rate_hz)
    if not single_only:
        async for result in _many(seconds):
            yield result
    if peer is not None:
        for result in await peer.measure(single):
            yield result


async def _many(seconds: float) -> AsyncIterator[Result]:
    """Many calls, many clients, and a bus that loses datagrams."""
    count = round(seconds * 2)
    async with running() as system:
        yield await system.measure(f"{_CALLS} calls, 2 Hz each", count=count, rate_hz=2.0, calls=_CALLS)
        for clients, stalled in ((50, 0), (200, 0), (200, 20)):
            yield await measure_clients(system, clients=clients, stalled=stalled, count=100, rate_hz=20.0, size=8000)
    async with running(loss=0.2) as system:
        rate_hz = _RATES_HZ[-1]
        yield await system.measure(f"20 % loss, {rate_hz:g} Hz", count=round(seconds * rate_hz), rate_hz=rate_hz)
        yield await system.measure(f"20 % loss, burst of {_BURST}", count=_BURST)
        yield await system.measure(f"20 % loss, {_CALLS} calls", count=count, rate_hz=2.0, calls=_CALLS)


async def _run(rounds: int, quick: bool, single_only: bool, peer: Peer | None) -> list[Result]:
    found: dict[str, list[Result]] = {}
    for _ in range(rounds):
        async for result in _one_round(quick, single_only, peer):
            found.setdefault(result.name, []).append(result)
    return [median_of(results) for results in found.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument("--quick", action="store_true", help="shorter runs of each row")
    parser.add_argument("--single", action="store_true", help="only one call and one client, as a peer has them")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each row; the median one is shown")
    parser.add_argument("--peer", type=Path, metavar="PYTHON", help="interpreter of a dimos installation to compare")
    arguments = parser.parse_args()
    try:
        peer = Peer.at(arguments.peer) if arguments.peer else None
        results = run_live(_run(arguments.rounds, arguments.quick, arguments.single, peer))
    except UserError as error:
        parser.exit(2, f"error: {error}\n")
    if arguments.json:
        print(json.dumps([result.as_dict() for result in results]))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
