"""Watching a robot live: what it costs the bridge, and how old a picture is when a watcher has it.

    python -m benchmarks.live_view            # a table
    python -m benchmarks.live_view --json     # the same numbers for programs
    python -m benchmarks.live_view --seconds 5

A simulated robot (320 x 240 pixels, 10 Hz) and a bridge, each a process, over LCM; watchers in another process, each
with a connection of its own that acknowledges every frame at once. The age is the time from a picture's stamp, at its
exposure, to the acknowledgement. A whole page watches camera, scan, odometry and frames; depth is raw on the bus and
made a JPEG for who watches it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import statistics
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import requests
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.process_tree import usage_of
from benchmarks.table import machine_line
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions
from tests.ports import free_bus, free_port

_CONTEXT = multiprocessing.get_context("spawn")
_CAMERA = ("/color_image",)
_PAGE = ("/color_image", "/scan", "/odom", "/tf", "/ground_truth")
_SETTLING_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What it is to be watched so."""

    name: str
    watchers: int
    topics: int
    processor: float
    """The bridge's share of one core."""
    pictures_hz: float
    """That each watcher got."""
    p50_ms: float | None
    """The age of a picture when a watcher had acknowledged it."""
    p95_ms: float | None


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--seconds", type=float, default=20.0, help="measured of each row")
    arguments = parser.parse_args(argv)
    views = asyncio.run(_measure_all(arguments.seconds))
    if arguments.json:
        print(json.dumps([asdict(view) for view in views], indent=2))
    else:
        _print_table(views)


async def _measure_all(seconds: float) -> list[View]:
    async with _running() as (url, pid):
        return [
            await _measure(url, pid, seconds, name, watchers, topics)
            for name, watchers, topics in (
                ("nobody", 0, ()),
                ("1, camera", 1, _CAMERA),
                ("1, depth", 1, ("/depth_image",)),
                ("1, whole page", 1, _PAGE),
                ("10, camera", 10, _CAMERA),
                ("10, whole page", 10, _PAGE),
            )
        ]


@contextlib.asynccontextmanager
async def _running() -> AsyncIterator[tuple[str, int]]:
    """A robot and a bridge; the bridge's URL and process."""
    port = free_port()
    blueprint = Blueprint(
        name="benchmark",
        modules={
            "robot": ModuleSpec(name="robot", type="dimos_streams.robot.simulator:Simulator"),
            "bridge": ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge", config={"port": port}),
        },
    )
    with tempfile.TemporaryDirectory() as directory:
        options = RunOptions(bus_url=free_bus(), port=port, run_dir=Path(directory))
        supervisor = Supervisor(blueprint, options)
        await supervisor.start()
        try:
            pid = next(view.pid for view in supervisor.processes() if view.label == "bridge")
            assert pid is not None
            listed = await asyncio.to_thread(requests.get, f"{options.bridge_url}/live", timeout=10)
            missing = {*_PAGE} - {each["topic"] for each in listed.json()["topics"]}
            assert not missing, missing
            yield options.bridge_url, pid
        finally:
            await supervisor.stop()


async def _measure(url: str, pid: int, seconds: float, name: str, watchers: int, topics: tuple[str, ...]) -> View:
    here, there = _CONTEXT.Pipe()
    watching = _CONTEXT.Process(target=_watch_all, args=(there, url, watchers, topics))
    watching.start()
    await asyncio.to_thread(here.recv)
    await asyncio.sleep(_SETTLING_S)
    here.send("begin")
    before, began = usage_of(pid).processor_s, time.monotonic()
    await asyncio.sleep(seconds)
    used, took = usage_of(pid).processor_s - before, time.monotonic() - began
    here.send("end")
    ages: list[float] = await asyncio.to_thread(here.recv)
    await asyncio.to_thread(watching.join)
    found = statistics.quantiles(ages, n=20) if len(ages) > 1 else None
    return View(
        name=name,
        watchers=watchers,
        topics=len(topics),
        processor=round(used / took, 4),
        pictures_hz=round(len(ages) / took / watchers, 2) if watchers else 0.0,
        p50_ms=round(statistics.median(ages), 1) if found else None,
        p95_ms=round(found[18], 1) if found else None,
    )


def _watch_all(pipe: Connection, url: str, watchers: int, topics: tuple[str, ...]) -> None:
    asyncio.run(_watch(pipe, url, watchers, topics))


async def _watch(pipe: Connection, url: str, watchers: int, topics: tuple[str, ...]) -> None:
    ages: list[float] = []
    async with contextlib.AsyncExitStack() as stack:
        address = f"{url.replace('http', 'ws')}/live"
        sockets = [
            await stack.enter_async_context(connect(address, max_size=None, compression=None))
            for _ in range(watchers)
        ]
        for socket in sockets:
            await socket.send(json.dumps({"watch": {topic: {} for topic in topics}}))
        reading = [asyncio.create_task(_read(socket, ages)) for socket in sockets]
        pipe.send("ready")
        await asyncio.to_thread(pipe.recv)
        ages.clear()
        await asyncio.to_thread(pipe.recv)
        pipe.send(list(ages))
        await end_tasks_silently(*reading)


async def _read(socket: ClientConnection, ages: list[float]) -> None:
    async for message in socket:
        if isinstance(message, str):
            continue
        (length,) = struct.unpack_from("<I", message)
        header = json.loads(message[4 : 4 + length])
        await socket.send(json.dumps({"seen": header["topic"]}))
        if header["kind"] == "picture":
            ages.append((time.time_ns() // 1000 - header["stamp"]) / 1000)


def _print_table(views: Sequence[View]) -> None:
    print(machine_line())
    print(f"{'watchers':20}{'one core':>10}{'pictures/s':>12}{'p50 ms':>9}{'p95 ms':>9}")
    for view in views:
        ages = "".join(f"{age:9.1f}" if age is not None else f"{'':9}" for age in (view.p50_ms, view.p95_ms))
        print(f"{view.name:20}{view.processor:10.1%}{view.pictures_hz:12.1f}{ages}")


if __name__ == "__main__":
    main()
