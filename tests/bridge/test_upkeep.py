"""What a bridge looks after while it runs."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dimos_streams.bridge.module import Bridge
from dimos_streams.testing import ModuleHarness
from tests.bridge.scene import event, scene
from tests.helpers import until


@pytest.mark.virtual_time
async def test_a_journal_that_somebody_deletes_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    async with ModuleHarness(Bridge, {"http": False, "journal": path}) as harness:
        journal = harness.module.journal
        journal.append([event(1)])
        path.unlink()
        await until(path.exists)
        assert (journal.state, journal.last_offset) == ("ok", 1)


@pytest.mark.virtual_time
async def test_a_journal_may_be_in_the_users_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with ModuleHarness(Bridge, {"http": False, "journal": "~/journal.sqlite"}) as harness:
        assert harness.module.journal.state == "ok"
        assert (tmp_path / "journal.sqlite").exists()


@pytest.mark.virtual_time
async def test_a_deleted_journal_is_not_copied_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.sqlite"
    copied: list[str] = []
    async with ModuleHarness(Bridge, {"http": False, "journal": path}) as harness:
        run_blocking = harness.module.run_blocking

        async def noted(function: Callable[..., Any], *args: Any) -> Any:
            copied.append(str(function))
            return await run_blocking(function, *args)

        monkeypatch.setattr(harness.module, "run_blocking", noted)
        journal = harness.module.journal
        journal.append([event(number) for number in range(1, 1201)])
        path.unlink()
        await until(lambda: any("FileCopy" in each for each in copied))
        await until(path.exists)


@pytest.mark.virtual_time
async def test_a_bridge_without_a_thread_for_its_disk_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    log = tmp_path / "journal.sqlite-wal"
    async with ModuleHarness(Bridge, {"http": False, "journal": path}) as harness:
        bridge = harness.module

        async def refused(*args: Any) -> NoReturn:
            raise OSError(errno.EAGAIN, "can't start new thread")

        with monkeypatch.context() as system:
            system.setattr(bridge, "run_blocking", refused)
            bridge.journal.append([event(number) for number in range(1, 101)])
            await until(lambda: "can't start new thread" in bridge.health)
        full = log.stat().st_size
        await until(lambda: log.stat().st_size < full)
        await until(lambda: bridge.health == "ok")


@pytest.mark.virtual_time
async def test_the_log_tells_when_a_module_was_not_well_and_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dimos_streams.bridge.health_log")
    async with scene() as world:
        worker = next(process.modules["worker"] for process in world.processes if "worker" in process.modules)

        def is_heard() -> bool:
            return world.broker.directory.unwell().get("worker", "ok") == worker.health

        for health in ("battery at 12.5 %", "battery at 9 %", "no odometry\nhealth: all is well", "ok"):
            worker.health = health
            await until(is_heard)
            await asyncio.sleep(1.1)
    assert [line for line in caplog.messages if line.startswith("health of modules: worker")] == [
        "health of modules: worker battery at 12.5 %",
        "health of modules: worker no odometry\\nhealth: all is well",
        "health of modules: worker ok",
    ]
