"""Orders over HTTP that robots stand still and calls end: one request each, that waits for nobody."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from dimos_streams.cli.bridge_client.run_status.text import warnings
from dimos_streams.operator.messages.stop import GoingOn, Stop, StoppedRobots
from dimos_streams.serving.server.request_order import RequestOrder
from tests.bridge.calls.driven_robots import Stubborn
from tests.bridge.serving import Served, served

pytestmark = pytest.mark.feature("K5")


@pytest.fixture(scope="module")
def bridge() -> Iterator[Served]:
    with served() as made:
        yield made


@pytest.mark.slow
def test_one_request_stops_and_one_releases(bridge: Served) -> None:
    bridge.call("follow", "answer", description="ann")
    report = bridge.post("/robots/stop", {"reason": "wet floor"}).json()
    assert report["confirmed"] is False, "this robot has no velocity gate"
    assert report["not_held"][0]["problem"] == "missing"
    assert "NOT held: the robot: no velocity gate of it was heard of" in report["text"]
    assert len(report["calls"]["ended"]) == 1
    refused = bridge.post("/calls", {"skill": "at_once", "arguments": {"value": 1}})
    assert (refused.status_code, "an operator has stopped" in refused.json()["detail"]) == (409, True)
    assert bridge.get("/healthz").json()["stopped"]["stops"][0]["reason"] == "wet floor"
    robots = bridge.get("/robots").json()
    assert (robots["robots"], [*robots["orders"]]) == ([""], [""])

    unknown = bridge.post("/robots/stop", {"robot": "robot7"})
    assert (unknown.status_code, unknown.json()["type"]) == (404, "urn:dimos-streams:problem:unknown-robot")
    assert bridge.post("/robots/stop", {"robots": "all"}).status_code == 422

    assert bridge.post("/robots/release").json()["changed"] is True
    late = bridge.post("/calls", {"skill": "at_once", "arguments": {"value": 1}, "robot_order": 0})
    assert (late.status_code, "stopped the robot since it was asked for" in late.json()["detail"]) == (409, True)
    assert bridge.call("at_once", value=1)["outcome"] == "completed"


@pytest.mark.parametrize("seen", [[True], ["5"], [1.5]])
def test_a_stop_is_named_by_a_number_and_nothing_that_passes_for_one(bridge: Served, seen: list[Any]) -> None:
    assert bridge.post("/robots/release", {"seen": seen}).status_code == 422


def test_a_time_to_wait_is_a_number(bridge: Served) -> None:
    assert bridge.post("/calls/cancel", {"wait_s": True}).status_code == 422
    assert bridge.post("/calls/cancel", {"wait_s": "1"}).status_code == 422


def test_a_release_names_the_stops_that_were_seen(bridge: Served) -> None:
    bridge.post("/robots/stop", {"reason": "first"})
    seen = [stop["utime"] for stop in bridge.get("/robots").json()["stopped"]["stops"]]
    bridge.post("/robots/stop", {"reason": "second"})
    refused = bridge.post("/robots/release", {"seen": seen})
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:dimos-streams:problem:conflict")
    (newer,) = refused.json()["current"]["stops"]
    assert (newer["reason"], newer["utime"] > seen[0]) == ("second; first", True)
    assert bridge.get("/robots").json()["stopped"]["stops"] == [newer]
    assert bridge.post("/robots/stop", {"seen": seen}).status_code == 422, "a stop depends on nothing"
    assert bridge.post("/robots/release", {"seen": [*seen, newer["utime"]]}).json()["changed"] is True


def test_a_stop_is_written_down_though_skills_block_all_threads(tmp_path: Path) -> None:
    go_on = threading.Event()

    async def block() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        loop.run_in_executor(None, go_on.wait)

    with served(journal=tmp_path / "journal.db") as bridge:
        bridge.run(block())
        try:
            assert bridge.post("/robots/stop").json()["unsaved"] == ""
        finally:
            go_on.set()


@pytest.mark.slow
def test_a_disk_that_hangs_delays_no_stop_for_long_and_hides_none(tmp_path: Path) -> None:
    hung = tmp_path / "journal.stops.new"
    os.mkfifo(hung)  # whoever opens it to write waits for a reader
    with served(journal=tmp_path / "journal.db") as bridge:
        for _ in range(2):
            report = bridge.post("/robots/stop", {"reason": "wet floor"}).json()
            assert "has not been written within 2 s" in report["unsaved"]
        assert bridge.get("/healthz").json()["stopped"]["stops"][0]["reason"] == "wet floor"
        with hung.open("rb"):  # the disk works again
            assert bridge.post("/robots/stop", {"reason": "still wet"}).json()["unsaved"] == ""
    assert "still wet" in (tmp_path / "journal.stops.json").read_text()


def test_who_is_released_is_left_out_of_the_stop() -> None:
    stops = (Stop(robot="", utime=1, reason="spill"), Stop(robot="ida", utime=1))
    every, ida = warnings(StoppedRobots(stops=stops, released=("rex",)), ())
    assert every.startswith("STOPPED every robot but rex (spill), for ")
    assert ida.startswith("STOPPED ida, for ")


@pytest.mark.slow
def test_a_call_that_does_not_end_is_shown(bridge: Served) -> None:
    arm = Stubborn(name="arm")
    bridge.run(bridge.scene.add(arm))
    bridge.run(bridge.scene.offered("wave"))
    call_id = bridge.call("wave", "answer")["call_id"]
    report = bridge.post("/calls/cancel", {"reason": "enough"}).json()
    assert (report["confirmed"], report["going_on"][0]["call_id"]) == (False, call_id)

    def shown() -> dict[str, Any]:
        health: dict[str, Any] = bridge.get("/healthz").json()
        return health

    late = shown()["not_ending"]
    assert [(call["call_id"], call["skill"]) for call in late] == [(call_id, "wave")]
    (line,) = warnings(StoppedRobots(), map(GoingOn.model_validate, late))
    assert line.startswith(f"NOT ending wave [{call_id}] of arm, asked to for ")
    bridge._loop.call_soon_threadsafe(arm.enough.set)
    assert bridge.run(bridge.broker.wait(call_id, "close", 10.0))
    assert shown()["not_ending"] == []


@pytest.mark.virtual_time
async def test_a_stop_does_not_wait_for_the_requests_before_it() -> None:
    begun: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["path"])

    async def nothing(*args: Any) -> Any:
        raise AssertionError("nobody reads or writes here")

    order = RequestOrder(app)
    asked = [("POST", "/calls")] * 100 + [("POST", "/robots/stop")]
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*(order({"type": "http", "method": m, "path": p}, nothing, nothing) for m, p in asked))
    assert begun.index("/robots/stop") <= 1
