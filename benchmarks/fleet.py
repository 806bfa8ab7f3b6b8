"""Many robots that ship their journals to one hub: events a second, delays, processor, and how the database grows.

    python -m benchmarks.fleet [--robots 10 100 1000] [--rate 50] [--seconds 20] [--sqlite] [--json]

The robots are many in one process, each with a real journal and what a bridge ships with; an event of theirs has
about 300 bytes of JSON. The hub is a process as the command line starts it, PostgreSQL a server of its own whose
commits wait for the disk. One reader reads all events at the hub. A delay is from before an event is in its robot's
journal until that reader has it, so it has the time for which a robot collects events (``--age-s``) in it. A hub, or
a machine, that can't keep up shows in ``behind``: events that robots still have at the end. Shares are of one core;
µs of the processor for an event are the same divided by the rate, and say something on a busy machine, too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic_core import from_json

from benchmarks.postgres_cluster import PostgresCluster, postgres_cluster
from benchmarks.process_tree import usage_of
from dimos_streams.client.sse_client import SseClient
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.hub.storage.rows import StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage, open_engine
from tests.ports import free_port

_READY_S = 120.0
_WARM_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCost:
    """One measurement. Delays are in milliseconds, processor in cores, memory in MB."""

    robots: int
    rate: float
    """Events a second at each robot, as asked for."""
    events_per_s: int
    """As the reader has got them."""
    p50_ms: float
    p99_ms: float
    in_order: bool
    behind: int
    """Events that the hub did not have at the end."""
    hub_share: float
    database_share: float
    robots_share: float
    reader_share: float
    hub_mb: float
    bytes_per_event: float
    """By which the database grew."""
    load: float
    """Of the machine, averaged over a minute, before."""


@dataclass(slots=True)
class Reading:
    """What the reader has got, from the warm-up on."""

    events: int = 0
    delays_us: list[int] | None = None
    newest: dict[str, int] | None = None
    in_order: bool = True

    def take(self, data: str) -> None:
        """An event."""
        now = time.time_ns() // 1000
        event = from_json(data)
        robot, number = event["robot"], event["seq"]
        assert self.newest is not None
        self.in_order = self.in_order and self.newest.get(robot, number - 1) == number - 1
        self.newest[robot] = number
        self.events += 1
        if self.delays_us is not None:
            self.delays_us.append(now - event["utime"])


@contextlib.contextmanager
def hub_process(database: str, port: int) -> Iterator[subprocess.Popen[str]]:
    """A hub, once it serves."""
    process = start_hub(database, port)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def start_hub(database: str, port: int) -> subprocess.Popen[str]:
    """Begin a hub; returns when it serves."""
    command = [sys.executable, "-m", "dimos_streams", "hub", "--port", str(port), "--connections", "6000"]
    environment = {**os.environ, "DIMOS_STREAMS_DATABASE": database}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if not process.stdout.readline().startswith("serving"):
        process.wait(30)
        raise RuntimeError(f"the hub did not start: exit code {process.returncode}")
    return process


def add_robots(database: str, directory: Path, count: int) -> None:
    """Let robots r1, r2, … connect; their tokens are files in a directory."""
    storage = HubStorage(open_engine(database))
    storage.open()
    for number in range(1, count + 1):
        (directory / f"r{number}.token").write_text(storage.robots.add(f"r{number}"))
    storage.close()


def start_robots(url: str, directory: Path, *arguments: object) -> subprocess.Popen[str]:
    """Begin a process of robots; returns when they live."""
    command = [sys.executable, "-m", "benchmarks.fleet_robots", url, str(directory), *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def end(process: subprocess.Popen[str]) -> None:
    """End a process at once, if it lives."""
    process.kill()
    process.wait()


async def _read(url: str, reading: Reading, until: asyncio.Event) -> None:
    client = SseClient(f"{url}/tool_streams?from=1", rng=random.Random(1))
    async with contextlib.aclosing(client.events(capacity=8192)) as events:
        async for event in events:
            if event.type == "tool_stream":
                reading.take(event.data)
            if until.is_set():
                return


async def _measure(
    database: str, cluster: PostgresCluster | None, directory: Path, arguments: argparse.Namespace, robots: int
) -> FleetCost:
    load = os.getloadavg()[0]
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    add_robots(database, directory, robots)
    with hub_process(database, port) as hub, contextlib.ExitStack() as stack:
        shipping = start_robots(
            url, directory, "--robots", robots, "--rate", arguments.rate, "--age-s", arguments.age_s,
            "--seconds", _WARM_S + arguments.seconds,
        )  # fmt: skip
        stack.callback(end, shipping)
        pids = {"hub": hub.pid, "robots": shipping.pid, "reader": os.getpid()}
        pids |= {} if cluster is None else {"database": cluster.pid}
        reading, done = Reading(newest={}), asyncio.Event()
        task = asyncio.get_running_loop().create_task(_read(url, reading, done))
        await asyncio.sleep(_WARM_S)
        reading.delays_us, reading.events = [], 0
        size, began = _size(database), time.monotonic()
        before = {name: usage_of(pid).processor_s for name, pid in pids.items()}
        await asyncio.sleep(arguments.seconds - 1.0)
        took = time.monotonic() - began
        shares = {name: (usage_of(pid).processor_s - before[name]) / took for name, pid in pids.items()}
        # What the command of the reader has begun counts for itself, not for the reader.
        shares["reader"] -= shares["hub"] + shares["robots"]
        events, delays = reading.events, sorted(reading.delays_us) or [0]
        reading.delays_us = None
        grown = _size(database) - size
        memory = usage_of(hub.pid, memory=True).memory_mb
        output, _ = await asyncio.to_thread(shipping.communicate)
        said = json.loads(output)
        done.set()
        await end_tasks_silently(task)
    return FleetCost(
        robots=robots,
        rate=arguments.rate,
        events_per_s=round(events / took),
        p50_ms=delays[len(delays) // 2] / 1000,
        p99_ms=delays[int(len(delays) * 0.99)] / 1000,
        in_order=reading.in_order,
        behind=said["behind"],
        hub_share=shares["hub"],
        database_share=shares.get("database", 0.0),
        robots_share=shares["robots"],
        reader_share=shares["reader"],
        hub_mb=memory,
        bytes_per_event=grown / max(1, events),
        load=load,
    )


def _size(database: str) -> int:
    engine = open_engine(database)
    with contextlib.closing(engine):
        while True:
            with contextlib.suppress(StorageUnavailableError):  # on a busy machine it takes its time
                return engine.size()


def measure(arguments: argparse.Namespace, robots: int) -> FleetCost:
    """One row of the table, with an empty database."""
    with tempfile.TemporaryDirectory(prefix="fleet-") as name, contextlib.ExitStack() as stack:
        directory = Path(name)
        cluster = None if arguments.sqlite else stack.enter_context(postgres_cluster())
        database = f"sqlite:///{directory}/hub.sqlite" if cluster is None else cluster.url
        return asyncio.run(_measure(database, cluster, directory, arguments, robots))


def print_table(costs: list[FleetCost]) -> None:
    """One line a measurement."""
    print("                                                     |  µs of the processor for an event |")
    print(
        f"{'robots':>7}{'rate':>6}{'events/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'order':>6}{'behind':>8}"
        f"{'hub':>8}{'database':>10}{'robots':>8}{'reader':>8}{'hub MB':>8}{'B/event':>9}{'load':>6}"
    )
    for cost in costs:
        shares = (cost.hub_share, cost.database_share, cost.robots_share, cost.reader_share)
        hub, database, robots, reader = (1e6 * share / max(1, cost.events_per_s) for share in shares)
        print(
            f"{cost.robots:7}{cost.rate:6g}{cost.events_per_s:10}{cost.p50_ms:9.0f}{cost.p99_ms:9.0f}"
            f"{'yes' if cost.in_order else 'NO':>6}{cost.behind:8}"
            f"{hub:8.0f}{database:10.0f}{robots:8.0f}{reader:8.0f}{cost.hub_mb:8.0f}{cost.bytes_per_event:9.0f}"
            f"{cost.load:6.1f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--age-s", type=float, default=0.5)
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all that was begun ends
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    costs = [measure(given, robots) for robots in given.robots]
    if given.json:
        print(json.dumps([asdict(cost) for cost in costs], indent=1))
    else:
        print_table(costs)
