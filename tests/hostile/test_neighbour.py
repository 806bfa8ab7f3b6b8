"""A live robot beside a neighbour that forges every message of ours; in a siege, beside greedy HTTP clients too.

``DIMOS_STREAMS_NEIGHBOUR_S`` makes it a siege of so many seconds; ``DIMOS_STREAMS_NEIGHBOUR_RATE`` is in messages a
second, ``inf`` for as fast as it can.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from dimos_streams import clock
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView
from tests.hostile.idle_server import idle_server
from tests.hostile.test_greedy_clients import fill, greedy_clients
from tests.hostile.watch import Processors, Watch
from tests.live.mission import Mission, running
from tests.live.promises import by_call, read_journal

SECONDS = float(os.environ.get("DIMOS_STREAMS_NEIGHBOUR_S", "5"))
SEED = os.environ.get("DIMOS_STREAMS_FUZZ_SEED", "1")
RATE = os.environ.get("DIMOS_STREAMS_NEIGHBOUR_RATE", "500")
IS_SIEGE = "DIMOS_STREAMS_NEIGHBOUR_S" in os.environ
_HEALTHZ_S = 0.5

pytestmark = [pytest.mark.live, pytest.mark.timeout(120 + 2 * SECONDS)]

_logger = logging.getLogger(__name__)


@dataclass
class Slowest:
    """The slowest answer of a server."""

    wall_s: float = 0.0
    running_s: float = 0.0
    """Of it, how long the server computed,"""
    waiting_s: float = 0.0
    """and how long it was ready to go on and others had the processors; for the rest it waited for something else."""

    async def watch(self, url: str, pid: int | None, until: asyncio.Event) -> None:
        """Ask again and again. ``pid`` is the server's process, if it is known."""
        while not until.is_set():
            began, (running, waiting) = clock.monotonic(), scheduled_s(pid)
            answer = await asyncio.to_thread(requests.get, url, timeout=60)
            assert answer.status_code == 200
            wall_s = clock.monotonic() - began
            if wall_s > self.wall_s:
                ran, waited = scheduled_s(pid)
                self.wall_s, self.running_s, self.waiting_s = wall_s, ran - running, waited - waiting
            await asyncio.sleep(0.02)

    def __str__(self) -> str:
        of_these = f"{self.running_s:.2f} s of these on a processor and {self.waiting_s:.2f} s without one"
        return f"{self.wall_s:.2f} s at the worst, {of_these}"


def scheduled_s(pid: int | None) -> tuple[float, float]:
    """How long a process has had a processor so far, and how long it was kept from one; 0 where the kernel does not
    say."""
    try:
        ran, waited, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
    except OSError:
        return 0.0, 0.0
    return ran / 1e9, waited / 1e9


async def work(mission: Mission, seconds: float) -> list[CallView]:
    """A mission of many motions; its calls. In a siege, which has a machine for itself, none may end because that was
    held up, either."""
    done: list[CallView] = []
    end = clock.monotonic() + seconds
    move = mission.call if IS_SIEGE else mission.drive
    while clock.monotonic() < end or not done:
        done.append(await move("turn", angle_deg=10))
    return done


async def ended(process: asyncio.subprocess.Process) -> None:
    """End a program that runs still: one whose test has failed would go on flooding."""
    if process.returncode is None:
        process.kill()
        await process.wait()


@pytest.mark.feature("A3", "A5", "F6")
def test_a_neighbour_that_forges_everything(bus_url: str, free_port: int, tmp_path: Path) -> None:
    fill(tmp_path / "journal.sqlite")

    async def main() -> None:
        async with running(bus_url, free_port, tmp_path) as mission:
            quiet = asyncio.Event()
            asyncio.get_running_loop().call_later(2.0, quiet.set)
            await work(mission, 0.0)
            bridge, healthz = mission.process("bridge").pid, f"{mission.gateway.url}/healthz"
            usual, slowest, floor = Slowest(), Slowest(), Slowest()
            await usual.watch(healthz, bridge, quiet)
            watch = Watch(mission, tmp_path / "logs")
            program = [sys.executable, "-m", "tests.hostile.neighbour", bus_url, str(SECONDS), SEED, RATE]
            neighbour = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
            over = asyncio.Event()
            async with contextlib.AsyncExitStack() as stack:
                stack.push_async_callback(ended, neighbour)
                greedy = await stack.enter_async_context(greedy_clients(free_port)) if IS_SIEGE else None
                attackers = {"neighbour": neighbour.pid, **({"greedy clients": greedy} if greedy else {})}
                used = Processors(mission, **attackers)
                watches = [slowest.watch(healthz, bridge, over), used.watch(over)]
                if IS_SIEGE:
                    watches.append(floor.watch(await stack.enter_async_context(idle_server()), None, over))
                answers = asyncio.gather(*watches)
                try:
                    calls = await work(mission, SECONDS)
                finally:
                    _logger.info("%s; %s; /healthz %s, an idle server %s", watch, used, slowest, floor)
                sent = json.loads((await neighbour.communicate())[0])
                over.set()
                await answers
            _logger.info(
                "%d forged messages in %.1f s, %d of %d calls completed; /healthz %s; before the attack %s",
                sum(sent.values()),
                watch.seconds(),
                sum(call.outcome is Outcome.COMPLETED for call in calls),
                len(calls),
                slowest,
                usual,
            )
            failed = Counter((call.outcome, call.text) for call in calls if call.outcome is not Outcome.COMPLETED)
            assert not failed, failed.most_common()
            assert neighbour.returncode == 0
            assert len(sent) == 8, sent
            watch.check()
            assert slowest.wall_s <= _HEALTHZ_S + 2 * usual.wall_s, "a busy machine is slow by itself"
            await mission.end_calls()
            reported = by_call(await read_journal(mission.gateway))
            for call in calls:
                events = reported[call.call_id]
                assert [event.seq for event in events] == list(range(1, len(events) + 1))
                assert (events[0].type, events[-1].type, events[-1].outcome) == ("open", "close", Outcome.COMPLETED)
                assert all("x" * 1000 not in event.text for event in events)

    asyncio.run(main())
