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
from pathlib import Path

import pytest
import requests

from dimos_streams import clock
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView
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


async def slowest_answer(mission: Mission, until: asyncio.Event) -> float:
    """How long ``/healthz`` took at the worst, in seconds."""
    worst = 0.0
    while not until.is_set():
        began = clock.monotonic()
        answer = await asyncio.to_thread(requests.get, f"{mission.gateway.url}/healthz", timeout=20)
        assert answer.status_code == 200
        worst = max(worst, clock.monotonic() - began)
        await asyncio.sleep(0.02)
    return worst


async def work(mission: Mission, seconds: float) -> list[CallView]:
    """A mission of many motions; its calls."""
    done: list[CallView] = []
    end = clock.monotonic() + seconds
    while clock.monotonic() < end or not done:
        done.append(await mission.call("turn", angle_deg=10))
    return done


@pytest.mark.feature("A3", "A5", "F6")
def test_a_neighbour_that_forges_everything(bus_url: str, free_port: int, tmp_path: Path) -> None:
    fill(tmp_path / "journal.sqlite")

    async def main() -> None:
        async with running(bus_url, free_port, tmp_path) as mission:
            quiet = asyncio.Event()
            asyncio.get_running_loop().call_later(2.0, quiet.set)
            await work(mission, 0.0)
            usual = await slowest_answer(mission, quiet)
            watch = Watch(mission, tmp_path / "logs")
            program = [sys.executable, "-m", "tests.hostile.neighbour", bus_url, str(SECONDS), SEED, RATE]
            neighbour = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
            over = asyncio.Event()
            async with greedy_clients(free_port) if IS_SIEGE else contextlib.nullcontext() as greedy:
                attackers = {"neighbour": neighbour.pid, **({"greedy clients": greedy} if greedy else {})}
                used = Processors(mission, **attackers)
                answers = asyncio.create_task(slowest_answer(mission, over))
                try:
                    calls = await work(mission, SECONDS)
                finally:
                    _logger.info("%s; %s", watch, used)
                sent = json.loads((await neighbour.communicate())[0])
                over.set()
                worst = await answers
            _logger.info(
                "%d forged messages in %.1f s, %d of %d calls completed; /healthz %.2f s at the worst, %.2f s before",
                sum(sent.values()),
                watch.seconds(),
                sum(call.outcome is Outcome.COMPLETED for call in calls),
                len(calls),
                worst,
                usual,
            )
            assert [call.text for call in calls if call.outcome is not Outcome.COMPLETED] == []
            assert neighbour.returncode == 0
            assert len(sent) == 8, sent
            watch.check()
            assert worst <= _HEALTHZ_S + 2 * usual, "a busy machine is slow by itself"
            await mission.end_calls()
            reported = by_call(await read_journal(mission.gateway))
            for call in calls:
                events = reported[call.call_id]
                assert [event.seq for event in events] == list(range(1, len(events) + 1))
                assert (events[0].type, events[-1].type, events[-1].outcome) == ("open", "close", Outcome.COMPLETED)
                assert all("x" * 1000 not in event.text for event in events)

    asyncio.run(main())
