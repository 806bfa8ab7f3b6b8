"""A hub goes on with what it does besides answering, whatever goes wrong in it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.hub.storage.commands import CommandTable
from dimos_streams.hub.storage.robots import RobotTable
from dimos_streams.hub.storage.rows import StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import HubThreads, in_thread
from tests.helpers import no_threads, until
from tests.hub.serving import Robot, added, served_hub


def test_a_defect_in_its_works_is_logged_and_ends_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> Any:
        raise OverflowError("a defect")

    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    monkeypatch.setattr("dimos_streams.hub.command_streams._KEEP_S", 0.05)
    for table, method in ((HubStorage, "trim"), (RobotTable, "keep"), (CommandTable, "due")):
        monkeypatch.setattr(table, method, fail)
    lines = ("the hub's database can't be looked after", "which robots are connected can't", "commands can't be read")
    with served_hub(database) as hub, robot.commands(hub):
        asyncio.run(until(lambda: all(f"{line}" in caplog.text for line in lines)))
        assert [task.done() for task in hub._hub._tasks] == [False] * 7


def test_what_finds_no_thread_is_refused_as_if_the_database_were_away() -> None:
    async def scenario() -> None:
        with no_threads(), ThreadPoolExecutor(1) as executor, pytest.raises(StorageUnavailableError):
            await in_thread(executor, int)

    asyncio.run(scenario())


def test_a_hub_that_gets_no_thread_for_it_lets_its_threads_go_all_the_same() -> None:
    async def scenario(threads: HubThreads) -> None:
        with no_threads():
            await threads.close()

    threads = HubThreads()
    asyncio.run(scenario(threads))
    for group in (threads.orders, threads.pages, threads.others, threads.upkeep):
        with pytest.raises(RuntimeError, match="after shutdown"):
            group.submit(int)
