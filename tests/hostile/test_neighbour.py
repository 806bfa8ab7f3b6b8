"""A live robot beside a neighbour that forges every message of ours.

``DIMOS_STREAMS_NEIGHBOUR_S`` makes it longer; ``DIMOS_STREAMS_NEIGHBOUR_RATE`` is in messages a second, ``inf`` for
as fast as it can.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from pathlib import Path

import pytest
import requests

from dimos_streams import clock
from dimos_streams.tool_stream.event import Outcome
from tests.hostile.watch import Watch
from tests.live.mission import Mission, running
from tests.live.promises import by_call, read_journal

SECONDS = float(os.environ.get("DIMOS_STREAMS_NEIGHBOUR_S", "5"))
SEED = os.environ.get("DIMOS_STREAMS_FUZZ_SEED", "1")
RATE = os.environ.get("DIMOS_STREAMS_NEIGHBOUR_RATE", "500")
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


async def work(mission: Mission, seconds: float) -> list[str]:
    """A mission of many motions; the ids of its calls, all of which completed."""
    done: list[str] = []
    end = clock.monotonic() + seconds
    while clock.monotonic() < end or not done:
        view = await mission.call("turn", angle_deg=10)
        assert view.outcome is Outcome.COMPLETED, view
        done.append(view.call_id)
    return done


@pytest.mark.feature("A3", "A5", "F6")
def test_a_neighbour_that_forges_everything(bus_url: str, free_port: int, tmp_path: Path) -> None:
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
            answers = asyncio.create_task(slowest_answer(mission, over))
            calls = await work(mission, SECONDS)
            sent = json.loads((await neighbour.communicate())[0])
            over.set()
            worst = await answers
            _logger.info(
                "%d forged messages in %.1f s, %d calls completed; /healthz %.2f s at the worst, %.2f s before; %s",
                sum(sent.values()),
                watch.seconds(),
                len(calls),
                worst,
                usual,
                watch,
            )
            assert neighbour.returncode == 0
            assert len(sent) == 8, sent
            watch.check()
            assert worst <= _HEALTHZ_S + 2 * usual, "a busy machine is slow by itself"
            await mission.end_calls()
            told = by_call(await read_journal(mission.gateway))
            for call_id in calls:
                events = told[call_id]
                assert [event.seq for event in events] == list(range(1, len(events) + 1))
                assert (events[0].type, events[-1].type, events[-1].outcome) == ("open", "close", Outcome.COMPLETED)
                assert all("x" * 1000 not in event.text for event in events)

    asyncio.run(main())
