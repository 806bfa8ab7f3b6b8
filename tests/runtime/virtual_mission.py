"""A mission in virtual time as a program: what is on all channels, as one hash for each seed that it is given.

python -m tests.runtime.virtual_mission 7 8
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Any

from dimos_streams import clock
from dimos_streams.blueprint.load import resolve
from dimos_streams.bus import Bus
from dimos_streams.common.process.collector import collect_seldom
from dimos_streams.runtime.facts import run_facts
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions

INPUT = "look out for a person in a red shirt and follow them"
PICTURE = {"robot.camera_width": 160, "robot.camera_height": 120}
_LOOKED_AFTER_S = 1.0003
"""When whoever watches has to watch. All topics are known then, and nothing else is due."""


class Bytes:
    """Hashes all that is on a bus, with its time, from the first message to the last."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.channels: dict[str, int] = {}

    @contextlib.asynccontextmanager
    async def attach(self, bus: Bus) -> AsyncIterator[None]:
        bus.subscribe_all(self._take)
        yield

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def _take(self, channel: str, data: bytes) -> None:
        self.channels[channel] = self.channels.get(channel, 0) + 1
        for part in (str(clock.utime()).encode(), channel.encode(), data):
            self._hash.update(len(part).to_bytes(4, "big") + part)


async def mission(
    seed: int,
    duration_s: float,
    settings: Mapping[str, Any] = MappingProxyType({}),
    *,
    watched: Callable[[], bool] = lambda: True,
) -> Bytes:
    """The stock mission, all of it: simulator, perception, skills, bridge, agent. It stands still until it is
    ``watched``: the time of those who watch is another one, and a busy machine lets them wait."""
    written = Bytes()
    blueprint = resolve("follow-person").configured({**PICTURE, **settings}, source="test")
    run = InProcessRun(blueprint, RunOptions(bus_url="memq://", seed=seed), attach=[written.attach])
    await run.start()
    assert run.gateway is not None
    await run.gateway.call("say", {"text": INPUT}, caller="operator")
    await asyncio.sleep(_LOOKED_AFTER_S)
    while not watched():
        time.sleep(0.001)  # noqa: ASYNC251 - nothing but the server has anything to do meanwhile
        await asyncio.sleep(0)
    await asyncio.sleep(duration_s - _LOOKED_AFTER_S)
    await run.stop()
    return written


def main() -> None:
    runs: dict[str, Any] = {}
    for seed in sys.argv[1:]:
        written = clock.run_virtual(mission(int(seed), duration_s=8.0))
        runs[seed] = {"digest": written.digest, "channels": written.channels}
    sys.stdout.write(json.dumps({"runs": runs, "facts": run_facts()}))


if __name__ == "__main__":
    collect_seldom()  # as the command does
    main()
