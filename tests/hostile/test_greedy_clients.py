"""A live mission beside greedy HTTP clients: slow, many, unread, in tiny chunks, of the full history.

``DIMOS_STREAMS_GREEDY_S`` makes it longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.journal.journal import Journal
from dimos_streams.tool_stream.event import EventType, Outcome
from tests.bridge.scene import event
from tests.hostile.greedy import asked, connected
from tests.hostile.test_requests import SERVED
from tests.hostile.watch import Watch
from tests.live.mission import running

SECONDS = float(os.environ.get("DIMOS_STREAMS_GREEDY_S", "2"))
_BOUND_S = 2.0
"""Generous; 0.5 s is what a quiet machine keeps with ease."""
_OLD = 400

pytestmark = [pytest.mark.live, pytest.mark.timeout(60 + 3 * SECONDS)]

_logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def greedy_clients(port: int) -> AsyncIterator[int]:
    """The id of their process."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.hostile.greedy", str(port))
    try:
        yield process.pid
        assert process.returncode is None
    finally:
        process.kill()
        await process.wait()


async def readers(port: int) -> int:
    """Streams that are open now."""
    async with connected(port, asked("GET /healthz", "Connection: close")) as reader:
        _, _, body = (await reader.read()).partition(b"\r\n\r\n")
    return int(json.loads(body)["counts"]["broadcast"]["readers"])


async def healthz(port: int) -> float:
    begun = clock.monotonic()
    async with connected(port, asked("GET /healthz", "Connection: close")) as reader:
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
    return clock.monotonic() - begun


def fill(path: Path) -> None:
    journal = Journal(path)
    journal.open()
    for seq in range(1, _OLD + 1):
        kind: EventType = "open" if seq == 1 else "close" if seq == _OLD else "update"
        journal.append([event(seq, kind, call_id="old", text="x" * 40_000)])
    journal.close()


@pytest.mark.feature("A3")
@pytest.mark.feature("F6")
def test_greedy_clients_cost_a_mission_nothing(bus_url: str, free_port: int, tmp_path: Path) -> None:
    fill(tmp_path / "journal.sqlite")

    async def main() -> None:
        async with running(bus_url, free_port, tmp_path, SERVED) as mission:
            assert (await mission.call("move")).outcome is Outcome.COMPLETED
            await healthz(free_port)
            watch = Watch(mission, tmp_path / "logs")
            worst, moves = 0.0, 0
            async with greedy_clients(free_port):
                while await readers(free_port) < 20:
                    assert watch.seconds() < 20
                begun = clock.monotonic()
                while clock.monotonic() - begun < SECONDS:
                    worst = max(worst, await healthz(free_port))
                    assert (await mission.call("move")).outcome is Outcome.COMPLETED
                    moves += 1
                watch.check()
            _logger.info("%d moves in %.1f s, /healthz at most %.3f s; %s", moves, watch.seconds(), worst, watch)
            assert worst <= _BOUND_S
            assert (await mission.call("move")).outcome is Outcome.COMPLETED

    asyncio.run(main())
