"""Many robots in one process, as far as a hub sees them: real journals in SQLite, and what bridges ship with.

    python -m benchmarks.fleet_robots HUB DIRECTORY --robots N --first M --rate EVENTS_PER_S [--seconds S]

Robot number M is ``rM``; its journal is in a folder of this name, its token in ``rM.token``. It may be killed at any
moment and begun again: each robot counts on from its journal. Without ``--seconds`` nothing happens any more at the
robots when standard input ends, and the process ends when the hub has everything.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import resource
import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dimos_streams import clock
from dimos_streams.bridge.fleet.connection import HubConnection
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.bridge.fleet.settings import HubLinkSettings
from dimos_streams.bridge.fleet.shipping.outflow import CurrentJournal
from dimos_streams.bridge.fleet.shipping.shipper import Shipper
from dimos_streams.bridge.fleet.troubles import Troubles
from dimos_streams.common.process.live_loop import new_live_loop
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.journal.broadcast import BroadcastLimits, JournalBroadcast
from dimos_streams.journal.journal import Journal, JournalLimits
from dimos_streams.tool_stream.event import ToolEvent

_THREADS = 32
_TURNS_PER_S = 10.0
"""How often in a second something happens at a robot."""
_PADDING = "x" * 100
_RING = BroadcastLimits(ring_events=512, ring_bytes=512 * 1024)


@dataclass
class FleetRobot:
    """One robot: its journal, and what ships it."""

    name: str
    journal: Journal
    broadcast: JournalBroadcast
    shipper: Shipper

    @classmethod
    def open(cls, name: str, url: str, directory: Path, threads: Executor, age_s: float) -> FleetRobot:
        """Take up the journal where it ends."""
        (directory / name).mkdir(exist_ok=True)  # as robots have it: none looks through the files of others
        journal = Journal(directory / name / "journal.sqlite", JournalLimits(events=10_000_000, bytes=1 << 40))
        journal.open()
        broadcast, rng = JournalBroadcast(journal, _RING), random.Random(name)
        settings = HubLinkSettings(url=url, robot=name, token_file=directory / f"{name}.token", age_s=age_s)
        connection = HubConnection(settings, rng=rng, threads=threads)
        troubles = Troubles(logging.getLogger("fleet"), url)
        link = LinkContext(connection, troubles, rng)
        return cls(name, journal, broadcast, Shipper(link, CurrentJournal(broadcast), age_s=age_s))

    def happen(self, count: int) -> None:
        """So many events, each of which says which it is and when it was."""
        first, now = self.journal.last_offset + 1, clock.utime()
        self.broadcast.publish(
            self.journal.append([self._event(number, now) for number in range(first, first + count)])
        )

    def _event(self, number: int, utime: int) -> ToolEvent:
        return ToolEvent(
            utime=utime,
            call_id=f"{self.name}-1",
            seq=number,
            type="open" if number == 1 else "update",
            module="source",
            skill="stream",
            caller="benchmark",
            text=f"event {number} {_PADDING}",
            data={"n": number},
        )


async def _happen(robots: list[FleetRobot], rate: float, until: asyncio.Event) -> None:
    """Events at all robots, spread over each turn; what falls behind because the processor is busy is made up for."""
    turn_s = 1.0 / _TURNS_PER_S
    began, given = clock.monotonic(), [0.0] * len(robots)
    while not until.is_set():
        for index, robot in enumerate(robots):
            due = (clock.monotonic() - began) * rate
            count = min(int(due - given[index]), 200)
            if count > 0:
                robot.happen(count)
                given[index] += count
            if index % 20 == 19:
                await asyncio.sleep(0)
        await asyncio.sleep(turn_s)


def _is_shipped(robot: FleetRobot) -> bool:
    state = robot.shipper.state()
    return state.acknowledged is not None and state.behind == 0


async def _input_ended() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass


async def main(arguments: argparse.Namespace) -> None:
    """Run the robots."""
    threads = ThreadPoolExecutor(_THREADS)
    names = [f"r{number}" for number in range(arguments.first, arguments.first + arguments.robots)]
    robots = [FleetRobot.open(name, arguments.hub, arguments.directory, threads, arguments.age_s) for name in names]
    loop, quiet = asyncio.get_running_loop(), asyncio.Event()
    happening = loop.create_task(_happen(robots, arguments.rate, quiet))
    shipping = [loop.create_task(robot.shipper.run()) for robot in robots]
    print("ready", flush=True)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(arguments.seconds):
            await _input_ended()
    quiet.set()
    await happening
    behind = sum(robot.shipper.state().behind for robot in robots)
    print(json.dumps({"behind": behind, "events": sum(robot.journal.last_offset for robot in robots)}), flush=True)
    while arguments.seconds is None and not all(map(_is_shipped, robots)):  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    await end_tasks_silently(*shipping)
    for robot in robots:
        robot.journal.close()
    sys.stdout.flush()
    os._exit(0)  # requests that are still in line for a thread are nobody's any more


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hub")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--robots", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--age-s", type=float, default=0.5)
    parser.add_argument("--seconds", type=float)
    logging.disable()  # hubs that go and come are the point
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with asyncio.Runner(loop_factory=new_live_loop) as runner:
        runner.run(main(parser.parse_args()))
