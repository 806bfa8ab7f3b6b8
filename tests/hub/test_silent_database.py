"""A database that says nothing: who only looks is told so in time, and so is whoever asks how the hub is."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.errors import DimosStreamsError
from dimos_streams.hub.storage.calls import CallTable
from dimos_streams.hub.storage.robots import RobotTable
from dimos_streams.hub.storage.rows import StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import HubThreads, TimedThreads
from tests.helpers import wait_for
from tests.hub.serving import Robot, added, served_hub
from tests.hub.test_mcp import use
from tests.problems import problem

_READS = ((RobotTable, "all"), (RobotTable, "of_token"), (CallTable, "newest"), (HubStorage, "read_back"))


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_who_only_looks_waits_for_a_bounded_time_and_health_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    over = threading.Event()

    def silent(*_: Any, **__: Any) -> Any:
        over.wait(20)
        raise StorageUnavailableError("it was silent")

    monkeypatch.setattr("dimos_streams.hub.http.refusing.READ_WAITS_S", 0.05)
    monkeypatch.setattr("dimos_streams.hub.parts._UNANSWERED_S", 0.2)
    monkeypatch.setattr("dimos_streams.hub.upkeep._OTHERS_S", 0.1)
    monkeypatch.setattr("dimos_streams.hub.fleet_view._FRESH_S", 0.0)
    with served_hub(database) as hub:
        wait_for(lambda: hub.get("/healthz").json()["status"] == "ok")
        try:
            with monkeypatch.context() as patched:
                for of, name in _READS:
                    patched.setattr(of, name, silent)
                for path in ("/robots", "/skills", "/skills?robot=r1", "/events", "/calls", "/tool_streams?robot=r1"):
                    refused = problem(hub.get(path), 503, "hub-unavailable")
                    assert "the hub's database has not answered for 0.1 s" in refused["detail"], path
                problem(robot.position(hub), 503, "hub-unavailable")
                for tool, arguments in (("list_calls", {}), ("cancel_call", {"call_id": "all"})):
                    answer = use(hub, tool, **arguments)
                    assert answer["isError"]
                    assert "has not answered for" in answer["content"][0]["text"]
                wait_for(lambda: "has not answered for" in hub.get("/healthz").json()["database"])
        finally:
            over.set()
        wait_for(lambda: hub.get("/healthz").json()["status"] == "ok")
        wait_for(lambda: hub.get("/robots").status_code == 200)


@pytest.mark.feature("H2")
def test_what_failed_is_told_until_all_that_is_looked_at_again_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if the hub can note that it is there, and can't read its robots. Its log says once that it works again."""
    monkeypatch.setattr("dimos_streams.hub.upkeep._OTHERS_S", 0.01)
    monkeypatch.setattr("dimos_streams.hub.fleet_view._FRESH_S", 0.0)
    looked, notes = threading.Semaphore(0), HubStorage.others

    def noted(*arguments: Any) -> Any:
        looked.release()
        return notes(*arguments)

    def failing(table: RobotTable) -> Any:
        table._engine.trouble = "the table robots is locked"
        raise StorageUnavailableError("the table robots is locked")

    monkeypatch.setattr(HubStorage, "others", noted)
    with served_hub(f"sqlite:///{tmp_path}/hub.sqlite") as hub:
        with monkeypatch.context() as patched:
            patched.setattr(RobotTable, "all", failing)
            problem(hub.get("/robots"), 503, "hub-unavailable")
            while looked.acquire(blocking=False):
                pass
            for _ in range(3):
                assert looked.acquire(timeout=20)
                assert "locked" in hub.get("/healthz").json()["database"]
            assert "works again" not in caplog.text
        wait_for(lambda: hub.get("/healthz").json()["status"] == "ok")
        while looked.acquire(blocking=False):
            pass
        for _ in range(3):
            assert looked.acquire(timeout=20)
    assert caplog.text.count("hub.sqlite works again") == 1


@pytest.mark.feature("H2")
def test_threads_know_how_long_the_oldest_work_has_taken_and_upkeep_may_take_long() -> None:
    busy, over = threading.Barrier(4), threading.Event()

    def work() -> None:
        busy.wait(10)
        over.wait(10)

    threads = HubThreads()
    groups = (threads.pages, threads.others, threads.upkeep)
    futures = [group.submit(work) for group in groups]
    busy.wait(10)
    try:
        assert threads.orders.longest_s == 0.0
        assert threads.unanswered_s >= threads.others.longest_s > 0.0
        assert not isinstance(threads.upkeep, TimedThreads)
    finally:
        over.set()
    for future in futures:
        future.result(10)
    wait_for(lambda: threads.unanswered_s == 0.0)
    threads._shut_down()


@pytest.mark.feature("H2")
def test_work_that_fails_is_over() -> None:
    def fail() -> None:
        raise DimosStreamsError("it fails")

    with TimedThreads(1, "hub") as threads:
        with pytest.raises(DimosStreamsError):
            threads.submit(fail).result(10)
        assert threads.submit(lambda: len(threads._began)).result(10) == 1
    assert threads.longest_s == 0.0
