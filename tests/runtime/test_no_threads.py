"""Workers where there are no more threads: what they can do without is left out, and what they can't is named."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from typing import Any

from dimos_streams.common.json.reading import parse_json
from dimos_streams.runtime.processes.slow_start import warn_if_slow
from dimos_streams.runtime.processes.worker import EXIT_FAILED, _Worker
from tests.helpers import no_threads


def test_a_module_starts_though_nobody_could_be_told_that_it_is_slow() -> None:
    async def start() -> str:
        starting = asyncio.ensure_future(asyncio.sleep(0))
        with no_threads(), warn_if_slow(starting, "camera"):
            await starting
        return "started"

    assert asyncio.run(start()) == "started"


def test_a_worker_that_could_not_see_its_run_die_does_not_begin_and_says_why() -> None:
    nothing: Any = None
    supervisor, reports = multiprocessing.Pipe()
    with supervisor, reports:
        worker = _Worker(nothing, reports, nothing)
        with no_threads():
            assert asyncio.run(worker.run()) == EXIT_FAILED
        report = parse_json(os.read(supervisor.fileno(), 10_000))
    assert report["kind"] == "failed"
    assert "no more threads and processes are allowed" in report["text"]
