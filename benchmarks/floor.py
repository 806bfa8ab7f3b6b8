"""The cost of the parts that can't be done without, by themselves: a datagram, and an event on a loopback stream.

Nothing is encoded, checked, stored or ordered here. The sum of both is the floor under the whole path.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.result import Arrivals, Result
from benchmarks.source import paced

_PADDING = b"x" * 200
_CONTEXT = multiprocessing.get_context("spawn")


def measure_floor(bus_url: str, count: int, rate_hz: float) -> tuple[Result, Result]:
    """Raw LCM from process to process, and a raw event stream over loopback."""
    datagrams = _from_process(_send_datagrams, _take_datagrams, bus_url, count, rate_hz)
    events = _from_process(_serve_stream, _read_stream, "", count, rate_hz)
    return (
        Result.of(f"floor: LCM, {rate_hz:g} Hz", count, datagrams),
        Result.of(f"floor: SSE, {rate_hz:g} Hz", count, events),
    )


def _from_process(send: Callable[..., None], receive: Callable[..., Arrivals], *arguments: Any) -> Arrivals:
    """Receive here what a process of its own sends."""
    here, there = _CONTEXT.Pipe()
    sender = _CONTEXT.Process(target=send, args=(there, *arguments))
    sender.start()
    try:
        return receive(here, *arguments)
    finally:
        sender.join()


def _send_datagrams(pipe: Connection, bus_url: str, count: int, rate_hz: float) -> None:
    import lcm

    pipe.recv()
    bus = lcm.LCM(bus_url)

    async def send() -> None:
        async for _ in paced(count, rate_hz):
            bus.publish("floor", b"%020d" % _now_us() + _PADDING)

    asyncio.run(send())


def _take_datagrams(pipe: Connection, bus_url: str, count: int, rate_hz: float) -> Arrivals:
    import lcm

    bus, taken = lcm.LCM(bus_url), _Taken()

    async def take() -> None:
        done = asyncio.Event()

        def on_datagram(channel: str, data: bytes) -> None:
            taken.add(int(data[:20]))
            if len(taken.latencies_us) == count:
                done.set()

        def on_readable() -> None:
            while bus.handle_timeout(0) > 0:
                pass

        subscription = bus.subscribe("floor", on_datagram)
        subscription.set_queue_capacity(0)
        loop = asyncio.get_running_loop()
        loop.add_reader(bus.fileno(), on_readable)
        pipe.send("go")
        async with asyncio.timeout(count / rate_hz + 10):
            await done.wait()
        loop.remove_reader(bus.fileno())
        bus.unsubscribe(subscription)

    asyncio.run(take())
    return taken.arrivals()


def _serve_stream(pipe: Connection, bus_url: str, count: int, rate_hz: float) -> None:
    async def serve() -> None:
        done = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            async for number in paced(count, rate_hz):
                event = b"event: floor\nid: %d\ndata: %020d%b\n\n" % (number, _now_us(), _PADDING)
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            writer.close()
            done.set()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await done.wait()
        server.close()

    asyncio.run(serve())


def _read_stream(pipe: Connection, bus_url: str, count: int, rate_hz: float) -> Arrivals:
    import requests

    from dimos_streams.client.event_stream.sse_parser import SseParser

    parser, taken = SseParser(), _Taken()
    with requests.get(f"http://127.0.0.1:{pipe.recv()}/", stream=True, timeout=10) as response:
        while piece := response.raw.read1(65536):
            for event in parser.feed(piece):
                taken.add(int(event.data[:20]))
    return taken.arrivals()


class _Taken:
    def __init__(self) -> None:
        self.latencies_us: list[int] = []
        self.first_us = 0

    def add(self, sent_us: int) -> None:
        now = _now_us()
        self.first_us = self.first_us or now
        self.latencies_us.append(now - sent_us)

    def arrivals(self) -> Arrivals:
        return Arrivals(numbers=(), latencies_us=self.latencies_us, first_us=self.first_us, last_us=_now_us())


def _now_us() -> int:
    return time.time_ns() // 1000
