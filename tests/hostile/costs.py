"""What forged messages cost a bridge and the process of a module: ``python -m tests.hostile.costs [SECONDS]``.

A bridge and a module with an open call, in virtual time on a bus in memory, so that only their own work counts. Each
kind of message comes at 5,000 a second for so many seconds of that time. The figures are microseconds of processor
for each message: those of the handlers that read it, in each of the two processes, and all that follows from it, in
both together.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Unpack

from dimos_streams import clock
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import Bus, Subscription, create_bus
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.bus.subscription import Handler, SubscriptionOptions
from dimos_streams.module import Module, RunContext, Services
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.testing import FaultBus, Faults
from tests.bridge.scene import Worker
from tests.helpers import until
from tests.hostile.neighbour import Message, Neighbour

_RATE = 5000
_BATCH = 50
_SETTLED_S = 3.0

Kind = tuple[str, Callable[[], Message]]


class TimedBus(FaultBus):
    """A process's access to the bus, which knows how long its handlers have taken."""

    def __init__(self, inner: Bus) -> None:
        super().__init__(inner, Faults(), seed=0)
        self.spent_s: dict[str, float] = defaultdict(float)
        """By channel."""

    def subscribe(self, channel: str, handler: Handler, **options: Unpack[SubscriptionOptions]) -> Subscription:
        def timed(channel: str, data: bytes) -> None:
            began = time.thread_time()
            handler(channel, data)
            self.spent_s[channel] += time.thread_time() - began

        return super().subscribe(channel, timed, **options)


async def flooded(kind: str, seconds: float, seed: int) -> tuple[int, float, dict[str, float]]:
    """How many messages of a kind came (none for an empty kind), the seconds of processor that all of it took, and
    those of the handlers by process."""
    bus = create_bus("memq://")
    await bus.open()
    buses = {name: TimedBus(bus) for name in ("bridge", "module")}
    bridge = Bridge({"http": False}, name="bridge", context=RunContext(services=Services()))
    parts: dict[str, Module] = {"bridge": bridge, "module": Worker(name="worker")}
    hosts = {}
    for name, part in parts.items():
        await buses[name].open()
        hosts[name] = ModuleHost(buses[name])
        await hosts[name].start(part, {})
    neighbour, listening = Neighbour(seed), TimedBus(bus)
    await listening.open()
    neighbour.listen(listening)
    await until(lambda: bridge.broker.directory.known("search") is not None)
    await bridge.broker.call("search", {}, caller="test")
    await asyncio.sleep(_SETTLED_S)
    await listening.close()
    messages = [getattr(neighbour, kind)() for _ in range(int(seconds * _RATE))] if kind else []
    # What has more than one datagram is refused by the kernel.
    messages = [(channel, data) for channel, data in messages if len(data) <= ONE_PIECE]
    for each in buses.values():
        each.spent_s.clear()
    channel = messages[0][0] if messages else ""
    pause_s, began = _BATCH / _RATE, time.process_time()
    for first in range(0, int(seconds * _RATE), _BATCH):
        for name, data in messages[first : first + _BATCH]:
            bus.publish(name, data)
        await asyncio.sleep(pause_s)
    spent = time.process_time() - began
    handlers = {name: each.spent_s[channel] for name, each in buses.items()}
    for name in reversed(hosts):
        await hosts[name].stop()
        await buses[name].close()
    await bus.close()
    return len(messages), spent, handlers


def main(seconds: float = 4.0) -> None:
    kinds = list(dict.fromkeys(each.__name__ for each in Neighbour(0).forge))
    _, idle, _ = clock.run_virtual(flooded("", seconds, 1))
    sys.stdout.write(f"{'µs of each':24}{'bridge':>10}{'module':>10}{'in all':>10}\n")
    for kind in kinds:
        count, spent, handlers = clock.run_virtual(flooded(kind, seconds, 1))
        figures = [handlers["bridge"], handlers["module"], spent - idle]
        sys.stdout.write(f"{kind:24}" + "".join(f"{each / count * 1e6:10.1f}" for each in figures) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
