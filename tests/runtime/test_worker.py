"""A worker by itself: what its supervisor does must not hold it up."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
from pathlib import Path

import pytest

from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.bus import create_bus
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import plan_modules, plan_processes
from dimos_streams.runtime.processes.fork_server import start_forkserver
from dimos_streams.runtime.processes.worker import main
from dimos_streams.runtime.processes.worker_task import WorkerTask
from tests.helpers import until, wait_for

pytestmark = pytest.mark.live

TALKER = ModuleSpec(name="talker", type="tests.runtime.modules:Talker")


def test_a_worker_whose_reports_nobody_reads_goes_on_and_ends_when_asked(bus_url: str, tmp_path: Path) -> None:
    (plan,) = plan_processes(plan_modules(Blueprint(name="talk", modules={"talker": TALKER})))
    task = WorkerTask(plan, RunOptions(bus_url=bus_url, run_dir=tmp_path), tmp_path / "log")
    context = multiprocessing.get_context("forkserver")
    _reader, writer = context.Pipe(duplex=False)
    os.set_blocking(writer.fileno(), False)
    with contextlib.suppress(BlockingIOError):  # as a stopped supervisor leaves it after a while
        while True:
            os.write(writer.fileno(), bytes(4096))
    os.set_blocking(writer.fileno(), True)

    async def scenario() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        heard: list[bytes] = []
        bus.subscribe("/words#std_msgs.String", lambda _, data: heard.append(data))
        start_forkserver()
        worker = context.Process(target=main, args=(task, writer), daemon=True)
        worker.start()
        try:
            await until(lambda: len(heard) >= 10)
            worker.terminate()
            await until(lambda: not worker.is_alive())
            assert worker.exitcode == 0
        finally:
            worker.kill()
            worker.join()
            await bus.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("blocks", "where"), [(True, "time.sleep(100)"), (False, "await asyncio.Event().wait()")], ids=["blocks", "waits"]
)
def test_the_log_says_where_a_module_is_that_has_not_started_for_long(
    blocks: bool, where: str, bus_url: str, tmp_path: Path
) -> None:
    slow = ModuleSpec(name="slow", type="tests.runtime.modules:SlowToStart", config={"blocks": blocks})
    (plan,) = plan_processes(plan_modules(Blueprint(name="slow", modules={"slow": slow})))
    log = tmp_path / "log"
    task = WorkerTask(plan, RunOptions(bus_url=bus_url, run_dir=tmp_path), log)
    context = multiprocessing.get_context("forkserver")
    _reader, writer = context.Pipe()
    start_forkserver()
    worker = context.Process(target=main, args=(task, writer), daemon=True)
    worker.start()
    try:
        wait_for(lambda: log.exists() and "has not started" in log.read_text())
        (line,) = [line for line in log.read_text().splitlines() if "has not started" in line]
        assert f"module slow has not started after 5 s: {where}" in line
        assert "modules.py:" in line
    finally:
        worker.kill()
        worker.join()
