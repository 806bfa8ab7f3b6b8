"""The cost of greedy HTTP clients to everybody else.

    python -m benchmarks.greedy [--json] [--only NAME]

A live bridge with its journal on disk, one for each scenario. While clients are greedy, a neighbour asks for
``/healthz`` every 20 ms on a connection of its own each time, and an honest reader follows updates at 100 Hz.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.result import Arrivals
from benchmarks.system import System, running
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.journal.journal import Journal
from dimos_streams.tool_stream.event import Outcome, ToolEvent

_CONTEXT = multiprocessing.get_context("spawn")
_PROBE_EVERY_S = 0.02
_HOST = "127.0.0.1"
_READ_S = 60.0
_UNREAD_S = 5.0
_RATE_HZ = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one scenario. Latencies in milliseconds, memory in MB."""

    name: str
    seconds: float
    healthz_p50_ms: float
    healthz_max_ms: float
    live_before_p50_ms: float
    live_p50_ms: float
    live_max_ms: float
    grown_mb: float
    """The most by which the bridge's resident memory was above that before."""
    restarts: int
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """``greedy`` runs in a process of its own, with the bridge's port, until it has enough."""

    name: str
    greedy: Callable[[int], Awaitable[str]]
    fill: Callable[[Path], None] | None = None
    token: str | None = None


def _events(path: Path, count: int, size: int) -> None:
    """A journal of one long call that is over."""
    journal = Journal(path)
    journal.open()
    seq = 0
    while seq < count:
        page = range(seq + 1, min(seq + 500, count) + 1)
        seq = page[-1]
        journal.append([_event("old", number, "update", "x" * size) for number in page])
    journal.append([_event("old", count + 1, "close", "")])
    journal.close()


def _event(call_id: str, seq: int, type: str, text: str) -> ToolEvent:
    return ToolEvent(
        utime=time.time_ns() // 1000,
        call_id=call_id,
        seq=seq,
        type="close" if type == "close" else "update",
        module="source",
        skill="stream",
        caller="greedy",
        text=text,
        data={"outcome": "completed"} if type == "close" else {},
    )


def _calls(path: Path) -> None:
    """A thousand ended calls with the largest arguments and results."""
    journal = Journal(path)
    journal.open()
    for number in range(1000):
        call = CallState(
            call_id=f"c{number}",
            skill="stream",
            module="source",
            caller="greedy",
            arguments={"text": "x" * 39_000},
            requested_utime=time.time_ns() // 1000,
            state="closed",
            outcome=Outcome.COMPLETED,
            result="y" * 40_000,
            last_seq=2,
        )
        journal.append([], [call.row()])
    journal.close()


async def _one_byte_chunks(port: int) -> str:
    head = f"POST /calls HTTP/1.1\r\nHost: {_HOST}:{port}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    answers = await asyncio.gather(*(_send(port, head + b"1\r\nx\r\n" * 200_000) for _ in range(20)))
    return ", ".join(f"{answers.count(answer)} of {answer or 'cut'}" for answer in sorted(set(answers)))


async def _long_heads(port: int) -> str:
    request = f"GET /healthz HTTP/1.1\r\nHost: {_HOST}:{port}\r\n".encode()
    heads = request + b"\r\n" + (request + b"a:b\r\n" * 40_000 + b"\r\n")
    answers = await asyncio.gather(*(_send(port, heads) for _ in range(60)))
    return ", ".join(f"{answers.count(answer)} of {answer or 'cut'}" for answer in sorted(set(answers)))


async def _send(port: int, data: bytes) -> str:
    """Send all, as far as it is taken; the status of the answer."""
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection(_HOST, port)
        with contextlib.closing(writer):
            writer.write(data)
            answer = asyncio.create_task(reader.read(1 << 16))
            with contextlib.suppress(OSError):
                await writer.drain()
            with contextlib.suppress(TimeoutError, OSError):
                return (await asyncio.wait_for(answer, 12.0))[9:12].decode()
    return ""


async def _stream(port: int, query: str = "?from=1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(_HOST, port, limit=1 << 20)
    writer.write(f"GET /tool_streams{query} HTTP/1.1\r\nHost: {_HOST}:{port}\r\n\r\n".encode())
    return reader, writer


async def _catch_up(port: int, count: int, last: int) -> str:
    async def read() -> bool:
        reader, writer = await _stream(port)
        tail, mark = b"", b"id: %d\n" % last
        with contextlib.closing(writer):
            while mark not in tail:
                data = await reader.read(1 << 18)
                if not data:
                    return False
                tail = tail[-64:] + data
        return True

    begun = time.monotonic()
    async with asyncio.timeout(_READ_S):
        read_all = await asyncio.gather(*(read() for _ in range(count)), return_exceptions=True)
    return f"{sum(each is True for each in read_all)} of {count} read all in {time.monotonic() - begun:.1f} s"


async def _ten_of_large(port: int) -> str:
    return await _catch_up(port, 10, _LARGE + 1)


async def _twenty_of_small(port: int) -> str:
    return await _catch_up(port, 20, _SMALL + 1)


async def _unread(port: int) -> str:
    streams = [await _stream(port) for _ in range(300)]
    for reader, _ in streams:
        reader._transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(_UNREAD_S)
    for _, writer in streams:
        writer.close()
    return "300 unread"


async def _all_calls(port: int) -> str:
    request = f"GET /calls HTTP/1.1\r\nHost: {_HOST}:{port}\r\nConnection: close\r\n\r\n".encode()

    async def read() -> int:
        reader, writer = await asyncio.open_connection(_HOST, port, limit=1 << 20)
        with contextlib.closing(writer):
            writer.write(request)
            size = 0
            while data := await reader.read(1 << 18):
                size += len(data)
        return size

    sizes = await asyncio.gather(*(read() for _ in range(12)))
    return f"{max(sizes) / 1e6:.1f} MB each"


_LARGE, _SMALL = 3000, 60_000

SCENARIOS = (
    Scenario("20 bodies of one-byte chunks, 1.2 MB each", _one_byte_chunks),
    Scenario("the same without the token", _one_byte_chunks, token="secret"),
    Scenario("60 requests with 40,000 headers", _long_heads),
    Scenario("10 readers of 3,000 events of 45 kB", _ten_of_large, lambda path: _events(path, _LARGE, 45_000)),
    Scenario("20 readers of 60,000 small events", _twenty_of_small, lambda path: _events(path, _SMALL, 20)),
    Scenario("300 streams that nobody reads", _unread, lambda path: _events(path, _LARGE, 45_000)),
    Scenario("12 requests for all calls", _all_calls, _calls),
)


async def measure(scenario: Scenario) -> Cost:
    """Run one scenario on a bridge of its own."""
    async with running(fill=scenario.fill, token=scenario.token) as system:
        before = await _follow(system, asyncio.create_task(asyncio.sleep(2.0)))
        memory, peak = system.bridge_memory_mb(), 0.0
        here, there = _CONTEXT.Pipe()
        pid = _bridge(system)
        probe_here, probe_there = _CONTEXT.Pipe()
        prober = _CONTEXT.Process(target=_probe, args=(probe_there, system.port, scenario.token))
        prober.start()
        await asyncio.to_thread(probe_here.recv)
        greedy = _CONTEXT.Process(target=_work, args=(there, scenario.name, system.port))
        greedy.start()
        begun = time.monotonic()

        async def until_done() -> None:
            nonlocal peak
            while not here.poll():
                with contextlib.suppress(OSError, StopIteration):
                    peak = max(peak, system.bridge_memory_mb())
                await asyncio.sleep(0.05)

        live = await _follow(system, asyncio.create_task(until_done()))
        remark, seconds = str(here.recv()), time.monotonic() - begun
        probe_here.send("end")
        latencies: list[float] = await asyncio.to_thread(probe_here.recv)
        greedy.join()
        prober.join()
        return Cost(
            name=scenario.name,
            seconds=round(seconds, 1),
            healthz_p50_ms=round(statistics.median(latencies) * 1e3, 1),
            healthz_max_ms=round(max(latencies) * 1e3),
            live_before_p50_ms=_p50(before),
            live_p50_ms=_p50(live),
            live_max_ms=round(max(live.latencies_us, default=0) / 1e3, 1),
            grown_mb=round(peak - memory),
            restarts=int(_bridge(system) != pid),
            remark=remark,
        )


def _bridge(system: System) -> int | None:
    return next(view.pid for view in system.supervisor.processes() if view.label == "bridge")


def _p50(arrivals: Arrivals) -> float:
    return round(statistics.median(arrivals.latencies_us or [0]) / 1e3, 2)


async def _follow(system: System, until: asyncio.Task[None]) -> Arrivals:
    """The events that an honest reader gets while something goes on."""
    listening = asyncio.create_task(system.listen(await system.gateway.offset(), 1))
    call_id = await system.gateway.call(
        "stream", {"count": 1_000_000, "rate_hz": _RATE_HZ, "size": 0}, caller="benchmark"
    )
    await until
    with contextlib.suppress(Exception):
        await system.gateway.cancel(call_id, "enough")
    try:
        return await asyncio.wait_for(listening, 15.0)
    except TimeoutError:
        return Arrivals(numbers=[], latencies_us=[15_000_000], first_us=0, last_us=0)


def _work(pipe: Connection, name: str, port: int) -> None:
    scenario = next(each for each in SCENARIOS if each.name == name)

    async def work() -> str:
        await asyncio.sleep(0.3)
        try:
            return await scenario.greedy(port)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            await asyncio.sleep(0.3)

    pipe.send(asyncio.run(work()))


def _probe(pipe: Connection, port: int, token: str | None) -> None:
    pipe.send("ready")
    pipe.send(asyncio.run(_probe_until_stopped(pipe, port, token)))


async def _probe_until_stopped(pipe: Connection, port: int, token: str | None) -> list[float]:
    latencies: list[float] = []
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    request = f"GET /healthz HTTP/1.1\r\nHost: {_HOST}\r\n{authorization}Connection: close\r\n\r\n".encode()

    async def once() -> None:
        begun = time.monotonic()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(20.0):
                reader, writer = await asyncio.open_connection(_HOST, port)
                with contextlib.closing(writer):
                    writer.write(request)
                    await reader.read()
        latencies.append(time.monotonic() - begun)

    async def ticks() -> AsyncIterator[None]:
        while not pipe.poll():
            yield
            await asyncio.sleep(_PROBE_EVERY_S)

    async with asyncio.TaskGroup() as group:
        async for _ in ticks():
            group.create_task(once())
    pipe.recv()
    return latencies


def _table(costs: Sequence[Cost]) -> str:
    lines = [
        "| | took | `/healthz` p50, max | live reader p50 before, during, max | bridge grew by | restarts | |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {c.name} | {c.seconds:g} s | {c.healthz_p50_ms:g} ms, {c.healthz_max_ms:g} ms"
        f" | {c.live_before_p50_ms:g} ms, {c.live_p50_ms:g} ms, {c.live_max_ms:g} ms"
        f" | {c.grown_mb:g} MB | {c.restarts} | {c.remark} |"
        for c in costs
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument("--only", metavar="TEXT", default="", help="the scenarios whose name has this in it")
    arguments = parser.parse_args()
    costs = [asyncio.run(measure(scenario)) for scenario in SCENARIOS if arguments.only in scenario.name]
    print(json.dumps([asdict(cost) for cost in costs]) if arguments.json else _table(costs))


if __name__ == "__main__":
    main()
