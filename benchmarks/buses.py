"""LCM and Zenoh beside each other: the time of a message, a burst, and a link that is cut.

    python -m benchmarks.buses [--json] [--quick] [--rounds 3]

Two real processes and the bus itself between them, without bridge, journal or client. While the link is cut, all
connections of Zenoh, which go through a relay of TCP here, are closed and none is taken; what LCM's receiver sends
and should get is thrown away. A tool stream is what skills send: its own protocol is above either bus, with the
heartbeats by which a receiver learns what it has missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.relay import Relay
from benchmarks.result import Arrivals, Result, median_of
from benchmarks.source import paced
from benchmarks.table import print_table
from dimos_streams.bus import Bus, create_bus
from dimos_streams.bus.delivery import Delivery
from dimos_streams.common.process.live_loop import run_live
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.testing import FaultBus, Faults
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.liveness.heartbeat import HEARTBEAT_S
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher
from tests.ports import free_bus, free_port

_RATES_HZ = (100.0, 200.0)
_BURST = 20_000
_CUT_RATE_HZ = 200.0
_BEFORE_S, _CUT_S, _AFTER_S = 2.0, 8.0, 4.0
_LATEST = "/benchmark#std_msgs.String"
_RELIABLE = "/benchmark/goal#std_msgs.String"
_DELIVERY: dict[str, Delivery] = {"/benchmark/goal": "reliable"}
_READY, _GO = "/benchmark/ready", "/benchmark/go"
_PADDING = b"x" * 80
_SILENCE_S = 5.0
_READY_EVERY_S = 0.05
_END_WITHIN_S = 15.0
"""The sender ends within so long, or is ended."""
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one process sends to the other."""

    name: str
    count: int
    rate_hz: float = 0.0
    channel: str = EVENTS
    tool_stream: bool = False
    cut: bool = False


def _loads(quick: bool) -> Iterator[Load]:
    seconds = 2.0 if quick else 10.0
    for rate_hz in _RATES_HZ:
        yield Load(name=f"{rate_hz:g} Hz", count=round(seconds * rate_hz), rate_hz=rate_hz)
    yield Load(name=f"burst of {_BURST}", count=_BURST)
    count = round((_BEFORE_S + _CUT_S + _AFTER_S) * _CUT_RATE_HZ)
    for name, channel, tool_stream in (
        ("latest", _LATEST, False),
        ("reliable", _RELIABLE, False),
        ("tool stream", EVENTS, True),
    ):
        yield Load(
            name=f"cut of {_CUT_S:g} s, {name}",
            count=count,
            rate_hz=_CUT_RATE_HZ,
            channel=channel,
            tool_stream=tool_stream,
            cut=True,
        )


async def _measure(transport: str, load: Load) -> Result:
    relay = Relay(free_port()) if transport == "Zenoh" and load.cut else None
    if relay is not None:
        await relay.open()
    here, there = _urls(transport, relay)
    real = create_bus(here, _DELIVERY)
    bus = FaultBus(real, Faults(), seed=0)
    pipe, other = _CONTEXT.Pipe()
    for each in (real, bus):
        await each.open()
    sender = _CONTEXT.Process(target=_send, args=(other, there, load))
    sender.start()
    try:
        return Result.of(f"{transport}, {load.name}", load.count, await _receive(bus, load, relay))
    finally:
        pipe.send("end")
        await asyncio.to_thread(sender.join, _END_WITHIN_S)
        sender.kill()
        for each in (bus, real):
            await each.close()
        if relay is not None:
            await relay.close()


def _urls(transport: str, relay: Relay | None) -> tuple[str, str]:
    """The bus as the receiver and as the sender have it."""
    if transport == "LCM":
        url = free_bus()
        return url, url
    domain = f"b{random.SystemRandom().getrandbits(32):x}"
    if relay is None:
        return f"zenoh:///{domain}", f"zenoh:///{domain}"
    # Peers would tell each other how they are reached, and link without the relay.
    return (
        f"zenoh:///{domain}?mode=router&listen=127.0.0.1:{relay.target}&scout=off",
        f"zenoh://127.0.0.1:{relay.port}/{domain}?mode=client&scout=off",
    )


async def _receive(bus: FaultBus, load: Load, relay: Relay | None) -> Arrivals:
    taken = _Taken(load.count)
    if load.tool_stream:
        receiver = ToolStreamReceiver(bus, taken.add_events, may_open=lambda event: True)
        receiver.start()
        bus.subscribe(STATUS, lambda channel, data: receiver.on_status(decode(ModuleStatus, data, channel=channel)))
    else:
        bus.subscribe(load.channel, taken.add, capacity=65536)
    ready = asyncio.Event()
    bus.subscribe(_READY, lambda *_: ready.set())
    async with asyncio.timeout(30):
        await ready.wait()
        await asyncio.sleep(0.2)
        while not taken.any:  # a bus may lose the word, too
            bus.publish(_GO, b"")
            await asyncio.sleep(_READY_EVERY_S)
    if load.cut:
        await asyncio.sleep(_BEFORE_S)
        await _cut(bus, relay)
    await taken.all_or_silence()
    return taken.arrivals()


async def _cut(bus: FaultBus, relay: Relay | None) -> None:
    if relay is None:
        bus.partitioned = True
        await asyncio.sleep(_CUT_S)
        bus.partitioned = False
        return
    await relay.cut()
    await asyncio.sleep(_CUT_S)
    await relay.open()


class _Taken:
    def __init__(self, count: int) -> None:
        self._count = count
        self._numbers: list[int] = []
        self._latencies_us: list[int] = []
        self._first_us = self._last_us = 0

    def add(self, channel: str, data: bytes) -> None:
        self._note(int(data[:8]), int(data[8:28]))

    def add_events(self, events: list[ToolEvent]) -> None:
        for event in events:
            if event.type == "update":
                self._note(event.data["number"], event.utime)

    def _note(self, number: int, sent_us: int) -> None:
        self._last_us = _now_us()
        self._first_us = self._first_us or self._last_us
        self._numbers.append(number)
        self._latencies_us.append(self._last_us - sent_us)

    @property
    def any(self) -> bool:
        """Whether something has come."""
        return bool(self._numbers)

    async def all_or_silence(self) -> None:
        """Wait until all have come, or nothing more does."""
        began = _now_us()
        while len(self._numbers) < self._count:
            await asyncio.sleep(0.05)
            if _now_us() - max(self._last_us, began) > _SILENCE_S * 1e6:
                return

    def arrivals(self) -> Arrivals:
        return Arrivals(
            numbers=[self._numbers], latencies_us=self._latencies_us, first_us=self._first_us, last_us=self._last_us
        )


def _send(pipe: Connection, url: str, load: Load) -> None:
    run_live(_sent(pipe, url, load))


async def _sent(pipe: Connection, url: str, load: Load) -> None:
    bus = create_bus(url, _DELIVERY)
    await bus.open()
    go = asyncio.Event()
    bus.subscribe(_GO, lambda *_: go.set())
    while not go.is_set():
        bus.publish(_READY, b"")
        await asyncio.sleep(_READY_EVERY_S)
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(_sender(bus, load)())
        await asyncio.to_thread(pipe.recv)
        sending.cancel()
    await bus.close()


def _sender(bus: Bus, load: Load) -> Callable[[], Coroutine[Any, Any, None]]:
    async def plain() -> None:
        async for number in paced(load.count, load.rate_hz):
            bus.publish(load.channel, b"%08d%020d" % (number, _now_us()) + _PADDING)
            if number % 100 == 99:
                await asyncio.sleep(0)

    async def tool_stream() -> None:
        publisher = ToolStreamPublisher(bus)
        publisher.start()
        writer = publisher.begin("1", module="m", skill="s", caller="c", text="", data={})
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_beat(bus, publisher))
            async for number in paced(load.count, load.rate_hz):
                await writer.update(_PADDING.decode(), {"number": number})
            writer.close(Outcome.COMPLETED, "", {})

    return tool_stream if load.tool_stream else plain


async def _beat(bus: Bus, publisher: ToolStreamPublisher) -> None:
    """Say how far the calls are, as the host of a module does, for as long as somebody may have missed something."""
    while True:
        live = publisher.heartbeat_calls("m")
        calls, seqs = [call_id for call_id, _ in live], [seq for _, seq in live]
        bus.publish(STATUS, encode(ModuleStatus(utime=_now_us(), module="m", call_ids=calls, last_seqs=seqs)))
        await asyncio.sleep(HEARTBEAT_S)


def _now_us() -> int:
    return time.time_ns() // 1000


async def _run(rounds: int, quick: bool, only: str) -> list[Result]:
    found: dict[str, list[Result]] = {}
    for _ in range(rounds):
        for load in _loads(quick):
            for transport in ("LCM", "Zenoh"):
                if only in f"{transport}, {load.name}":
                    result = await _measure(transport, load)
                    found.setdefault(result.name, []).append(result)
    return [median_of(results) for results in found.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument("--quick", action="store_true", help="shorter runs of each row")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each row; the median one is shown")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has this text")
    arguments = parser.parse_args()
    results = run_live(_run(arguments.rounds, arguments.quick, arguments.only))
    if arguments.json:
        print(json.dumps([result.as_dict() for result in results]))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
