"""Many clients of one bridge, in a process of their own; some of them never read."""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

import requests
from pydantic_core import from_json

from benchmarks.result import Arrivals, Result
from benchmarks.system import SEND_TIMEOUT_S, System
from dimos_streams.client.event_stream.sse_parser import SseEvent, SseParser

_CONTEXT = multiprocessing.get_context("spawn")
_SMALL_BUFFER = 4096


async def measure_clients(
    system: System, *, clients: int, stalled: int, count: int, rate_hz: float, size: int
) -> Result:
    """One call's updates, to every client; the remark says what became of those that do not read."""
    here, there = _CONTEXT.Pipe()
    arguments = (there, system.gateway.url, clients - stalled, stalled)
    reading = _CONTEXT.Process(target=_read_all, args=arguments)
    reading.start()
    await asyncio.to_thread(here.recv)
    before = system.bridge_memory_mb()
    await system.call(count=count, rate_hz=rate_hz, size=size)
    arrivals: Arrivals = await asyncio.to_thread(here.recv)
    after = system.bridge_memory_mb()
    name = f"{clients} clients" + (f", {stalled} of them stalled" if stalled else "")
    remark = f"bridge {before:.0f} -> {after:.0f} MB"
    if stalled:
        remark += f", cut {await _cut(system, stalled)}"
    here.send("end")
    await asyncio.to_thread(reading.join)
    return Result.of(name, count * (clients - stalled), arrivals, remark=remark)


async def _cut(system: System, expected: int) -> int:
    """The number of clients that the bridge has cut off, once it had the time."""
    cut = 0
    for _ in range(20):
        cut = await asyncio.to_thread(_cut_now, system.gateway.url)
        if cut >= expected:
            break
        await asyncio.sleep(SEND_TIMEOUT_S / 10)
    return cut


def _cut_now(url: str) -> int:
    counts = requests.get(f"{url}/healthz", timeout=10).json()["counts"]
    return int(counts["broadcast"]["cut"])


def _read_all(pipe: Connection, url: str, readers: int, stalled: int) -> None:
    asyncio.run(_read(pipe, url, readers, stalled))


async def _read(pipe: Connection, url: str, readers: int, stalled: int) -> None:
    idle = [await _connect(url, buffer=_SMALL_BUFFER) for _ in range(stalled)]
    streams = [await _connect(url) for _ in range(readers)]
    pipe.send("ready")
    latencies: list[int] = []
    spans: list[tuple[int, int]] = []
    numbers = await asyncio.gather(*(_follow(stream[0], latencies, spans) for stream in streams))
    first, last = min(span[0] for span in spans), max(span[1] for span in spans)
    pipe.send(Arrivals(numbers=numbers, latencies_us=latencies, first_us=first, last_us=last))
    await asyncio.to_thread(pipe.recv)
    for _, writer in (*streams, *idle):
        writer.close()


async def _connect(url: str, buffer: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(url)
    sock = socket.socket()
    if buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (address.hostname, address.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1 << (12 if buffer else 20))
    writer.write(f"GET /tool_streams HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def _follow(reader: asyncio.StreamReader, latencies: list[int], spans: list[tuple[int, int]]) -> list[int]:
    """The numbers of the updates up to the first close."""
    numbers: list[int] = []
    first = last = 0
    async for event in _events(reader):
        now, fields = time.time_ns() // 1000, from_json(event.data)
        if fields["type"] == "update":
            first, last = first or now, now
            latencies.append(now - fields["utime"])
            numbers.append(fields["data"]["number"])
        elif fields["type"] == "close":
            break
    spans.append((first, last))
    return numbers


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[SseEvent]:
    parser = SseParser()
    while True:
        size = int(await reader.readuntil(b"\r\n"), 16)
        chunk = await reader.readexactly(size + 2)
        for event in parser.feed(chunk[:size]):
            yield event
