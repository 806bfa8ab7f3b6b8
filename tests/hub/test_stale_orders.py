"""What is asked for while a hub's database is held up: no robot moves late, and whoever asks is told."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.hub.asking import Asker, BridgeReply, BridgeRequest, HubEndsError, RobotSilentError
from dimos_streams.hub.http import robots
from dimos_streams.hub.storage.rows import CommandState, StorageUnavailableError
from tests.helpers import wait_for
from tests.hub.serving import added, served_hub
from tests.hub.stored import command, opened


@contextlib.contextmanager
def held(url: str, *tables: str) -> Iterator[None]:
    """Nobody else gets at the tables meanwhile, nor at anything in a file."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as file:
            file.execute("BEGIN EXCLUSIVE")
            yield
        return
    import psycopg

    with psycopg.connect(url) as db:
        db.execute(f"LOCK TABLE {', '.join(tables)}")
        yield


@pytest.mark.slow
@pytest.mark.feature("H2")
@pytest.mark.parametrize(
    ("path", "is_late"),
    [("/calls", True), ("/robots/release", True), ("/robots/stop", False), ("/calls/c1/cancel", False)],
)
def test_what_waited_for_the_database_is_no_younger_and_only_what_stops_is_late(
    database_url: str, path: str, is_late: bool
) -> None:
    with opened(database_url) as storage, ThreadPoolExecutor(1) as pool:
        storage.robots.add("r1")
        with held(database_url, "commands"):
            began = clock.steady() - 29.9
            given = pool.submit(storage.commands.give, command(path=path, expires_in_s=30.0), began)
            wait_for(lambda: clock.steady() - began > 30.0)
            assert not given.done()
        if is_late:
            with pytest.raises(StorageUnavailableError, match=r"valid for 30 s: it was not carried out, and will"):
                given.result()
        else:
            assert isinstance(given.result(), int)
        storage.robots.connect("r1", "s", "process", 60)
        assert [each.path for each in storage.commands.due({"r1": "s"})] == ([] if is_late else [path])


@pytest.mark.feature("H2")
def test_a_command_has_only_the_time_that_is_left_of_it(database_url: str) -> None:
    with opened(database_url) as storage:
        storage.robots.add("r1")
        storage.robots.connect("r1", "s", "process", 60)
        assert isinstance(storage.commands.give(command(expires_in_s=60), clock.steady() - 40), int)
        (due,) = storage.commands.due({"r1": "s"})
        assert 0 < due.expires_in_s <= 20


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_database_that_says_nothing_is_told_to_whoever_stops_and_by_health(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.hub.http.refusing.ORDER_WAITS_S", 0.3)
    monkeypatch.setattr("dimos_streams.hub.asking._EXPIRES_IN_S", 0.3)
    monkeypatch.setattr("dimos_streams.hub.parts._SILENT_S", 0.8)
    monkeypatch.setattr("dimos_streams.hub.upkeep._OTHERS_S", 0.1)
    added(database_url, "r1")
    with served_hub(database_url) as hub:
        wait_for(lambda: hub.get("/healthz").json()["status"] == "ok")
        with held(database_url, "robots", "hubs"):
            refused = hub.post("/robots/stop")
            assert "has not answered for 0.3 s" in refused.text
            assert refused.status_code == 503 or "NOT REACHED" in refused.json()["text"]
            wait_for(lambda: "has taken nothing for" in hub.get("/healthz").json()["database"])
        wait_for(lambda: hub.get("/healthz").json()["status"] == "ok")


@pytest.mark.feature("H2")
@pytest.mark.parametrize("is_down", [False, True])
def test_who_stops_is_told_that_it_may_be_done_where_the_database_does_not_say(
    is_down: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.hub.asking.ORDER_WAITS_S", 0.05)
    monkeypatch.setattr(BridgeRequest, "within_s", property(lambda _: 0.01))
    monkeypatch.setattr(BridgeRequest, "expires_in_s", property(lambda _: 60.0))
    over = threading.Event()

    def silent(*_: object) -> dict[int, CommandState]:
        if is_down:
            raise StorageUnavailableError("it is down")
        assert over.wait(10)
        return {}

    async def ask(asker: Asker) -> None:
        try:
            with pytest.raises(RobotSilentError, match="nobody knows whether it was carried out"):
                await asker.ask(BridgeRequest("r1", "POST", "/robots/stop"))
        finally:
            over.set()

    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage, ThreadPoolExecutor(1) as pool:
        storage.robots.add("r1")
        monkeypatch.setattr(storage.commands, "states", silent)
        asyncio.run(ask(Asker(storage, pool)))


def test_who_asks_a_hub_that_ends_learns_it_at_once(tmp_path: Path) -> None:
    async def ask(asker: Asker) -> None:
        asker.end()
        with pytest.raises(HubEndsError):
            await asyncio.wait_for(asker.ask(BridgeRequest("r1", "POST", "/calls")), 10.0)

    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage, ThreadPoolExecutor(1) as pool:
        storage.robots.add("r1")
        asyncio.run(ask(Asker(storage, pool)))


@pytest.mark.virtual_time
@pytest.mark.feature("H2")
async def test_a_release_is_as_old_as_its_request_however_long_its_robot_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[BridgeRequest] = []

    async def ask_bridge(_: object, request: BridgeRequest) -> BridgeReply:
        asked.append(request)
        return BridgeReply(200, {"confirmed": True, "text": "released"}, {})

    async def find(name: str) -> SimpleNamespace:
        await asyncio.sleep(3.0)
        return SimpleNamespace(name=name)

    monkeypatch.setattr(robots, "ask_bridge", ask_bridge)
    parts: Any = SimpleNamespace(robots=SimpleNamespace(find=find))
    began = clock.steady()
    assert (await robots._give_order(parts, "/robots/release", robots.FleetRelease(robot="r1")))["confirmed"]
    assert [each.asked_at for each in asked] == [began]
