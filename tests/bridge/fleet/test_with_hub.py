"""A bridge and a hub, over HTTP: the hub has what happens at the robot, and the robot does what is asked there."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from dimos_streams.cli.bridge_client.answers import HubLinkState
from dimos_streams.cli.bridge_client.connection import BridgeAddress
from dimos_streams.cli.bridge_client.robot_orders import OrderTarget, give
from dimos_streams.common.process.run_owner import OWNER_FILE, RunOwner
from tests.bridge.serving import Served, served
from tests.helpers import wait_for
from tests.hub.serving import ServedHub, added, served_hub
from tests.middleman import middleman
from tests.problems import problem

pytestmark = [pytest.mark.feature("H2"), pytest.mark.slow]


BOUND_S = 30.0


@contextlib.contextmanager
def robot_of(tmp_path: Path, url: str, token: str) -> Iterator[Served]:
    file = tmp_path / "token"
    file.write_text(token)
    hub = {"url": url, "robot": "r1", "token_file": str(file), "age_s": 0.05}
    with served(journal=tmp_path / "journal.sqlite", hub=hub) as robot:
        yield robot


def link(robot: Served) -> dict[str, Any]:
    health: dict[str, Any] = robot.get("/healthz").json()["hub"]
    return health


def texts(hub: ServedHub, robot: Served) -> list[str]:
    """All events of the hub, once it serves all of the robot's."""
    return said(hub, wait_for(lambda: served_there(hub, robot), BOUND_S))


def served_there(hub: ServedHub, robot: Served) -> int:
    """The newest offset of a hub that serves all of its only robot's events; 0 if some are to come."""
    state, offset = link(robot), int(hub.get("/healthz").json()["offset"])
    return offset if state["behind"] == 0 and offset >= state["acknowledged"] else 0


def closed_call(hub: ServedHub, path: str) -> dict[str, Any]:
    """The call there, empty until it is closed."""
    call: dict[str, Any] = hub.get(path).json()
    return call if call["state"] == "closed" else {}


def said(hub: ServedHub, count: int) -> list[str]:
    """What the first events of a hub say, but for what was called."""
    return [event["text"] for _, event in hub.events(count) if event["type"] != "open"]


def test_a_robot_is_seen_and_commanded_at_its_hub(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    token = added(database, "r1")["r1"]
    with served_hub(database) as hub, robot_of(tmp_path, hub.url, token) as robot:
        robot.call("count", label="here", to=3)
        assert texts(hub, robot) == ["here 1", "here 2", "here 3", "here"]
        wait_for(lambda: link(robot)["commands"], BOUND_S)
        wait_for(lambda: any(skill["name"] == "r1_count" for skill in hub.get("/skills").json()), BOUND_S)
        body = {"skill": "count", "arguments": {"label": "there", "to": 2}, "robot": "r1", "caller": "operator"}
        answer = hub.post("/calls?wait=close", {**body, "idempotency_key": "once"})
        assert (answer.status_code, answer.json()["result"]) == (201, "there")
        again = hub.post("/calls?wait=close", {**body, "idempotency_key": "once"})
        assert again.json()["call_id"] == answer.json()["call_id"]
        assert texts(hub, robot)[4:] == ["there 1", "there 2", "there"]
        refused = hub.post("/calls", {**body, "skill": "at_once"})
        assert refused.status_code == 422, refused.text
        assert len(robot.get("/calls").json()) == 2
        line = HubLinkState.model_validate(link(robot)).text
        assert line.startswith(f"{hub.url} as r1: up to date, last acknowledged ")


def test_a_call_that_one_run_has_begun_is_not_begun_by_the_next_one(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    token = added(database, "r1")["r1"]
    runs = [tmp_path / name for name in ("1-before", "2-after")]
    for run in runs:
        run.mkdir()
        (run / OWNER_FILE).write_text(RunOwner(directory=run.name).model_dump_json())
    body = {"skill": "patrol", "robot": "r1", "caller": "operator", "idempotency_key": "once"}
    with served_hub(database) as hub:
        with robot_of(runs[0], hub.url, token) as robot:
            wait_for(lambda: hub.get("/robots").json()[0]["skills"] and link(robot)["commands"], BOUND_S)
            assert hub.post("/calls?wait=close&timeout_s=0.1", body).json()["waited"] == "timed_out"
        with robot_of(runs[1], hub.url, token) as robot:
            wait_for(lambda: link(robot)["commands"], BOUND_S)
            refused = problem(hub.post("/calls", body), 409, "call-rejected")
            assert refused["detail"].startswith("another run of this robot took this before")
            assert robot.get("/calls").json() == []


def test_two_robots_with_one_name_and_token_are_told_apart_and_no_stop_is_confirmed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    token = added(database, "r1")["r1"]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    why = "two robots call themselves 'r1': give each a name and token of its own"
    body = {"skill": "count", "arguments": {"label": "there", "to": 1}, "robot": "r1"}
    with served_hub(database) as hub, robot_of(tmp_path / "one", hub.url, token) as one:
        wait_for(lambda: link(one)["commands"], BOUND_S)
        wait_for(lambda: hub.get("/robots").json()[0]["skills"], BOUND_S)
        assert "two robots" not in hub.post("/robots/stop").json()["text"]
        assert hub.post("/robots/release").json()["text"].startswith("r1: ")
        with robot_of(tmp_path / "two", hub.url, token) as two:
            wait_for(lambda: link(one)["trouble"] == link(two)["trouble"] == why, BOUND_S)
            (seen,) = hub.get("/robots").json()
            assert (seen["status"], seen["notes"][0]) == ("degraded", why)
            assert why in problem(hub.post("/calls", body), 409, "command-refused")["detail"]
            stopped = hub.post("/robots/stop").json()
            assert not stopped["confirmed"]
            assert stopped["text"].startswith(f"r1: NOT CONFIRMED: {why}; one of them: ")
            assert not hub.post("/robots/r1/robots/stop").json()["confirmed"]
        assert [one.get("/calls").json(), hub.get("/calls").json()] == [[], []]
    lines = [record.getMessage() for record in caplog.records if why in record.getMessage()]
    assert sum(line.startswith(f"the hub {hub.url}: {why}") for line in lines) == 2, "each robot says it once"
    assert f"{why}; until then no calls of it are taken, and no stop counts as confirmed" in lines


def test_a_command_that_somebody_keeps_back_for_a_later_stream_is_not_carried_out(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    token = added(database, "r1")["r1"]
    call = {"skill": "count", "arguments": {"label": "late", "to": 1}, "robot": "r1"}
    with (
        served_hub(database) as hub,
        middleman(hub.url) as between,
        robot_of(tmp_path, between.url, token) as robot,
    ):
        wait_for(lambda: link(robot)["commands"], BOUND_S)
        between.keeps = True
        silent = problem(hub.post("/calls?wait=answer&timeout_s=0.1", call), 504, "robot-silent")
        assert "nobody knows whether it was carried out" in silent["detail"]
        assert len(between.kept) == 1
        between.keeps = False
        between.cut()
        wait_for(lambda: between.delivered, BOUND_S)
        prompt = hub.post("/calls?wait=close", {**call, "arguments": {"label": "prompt", "to": 1}})
        assert prompt.json()["result"] == "prompt"
        assert [each["arguments"]["label"] for each in robot.get("/calls").json()] == ["prompt"]


def test_a_release_at_a_hub_that_comes_late_undoes_no_newer_stop(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    token = added(database, "r1")["r1"]
    with (
        served_hub(database) as hub,
        middleman(hub.url) as between,
        robot_of(tmp_path, hub.url, token) as robot,
        ThreadPoolExecutor(1) as pool,
    ):
        wait_for(lambda: link(robot)["commands"], BOUND_S)
        to = [OrderTarget("hub", BridgeAddress(between.url, None))]
        hub.post("/robots/stop")
        (done,) = asyncio.run(give("/robots/release", "", "", to))
        assert (done.done, robot.broker.stops.stopped().stops) == (True, ())
        hub.post("/robots/stop", {"reason": "first"})
        between.holds = "/robots/release"
        late = pool.submit(asyncio.run, give("/robots/release", "r1", "", to))
        assert between.held.wait(20)
        hub.post("/robots/stop", {"reason": "second"})
        between.let_go.set()
        (refused,) = late.result()
        assert not refused.done
        assert re.match(r"r1: REFUSED: every robot was stopped \d+ s ago \(second; first\), after what", refused.text)
        assert [stop.reason for stop in robot.broker.stops.stopped().stops] == ["second; first"]


def test_every_link_of_a_robots_bridge_can_be_followed_at_its_hub(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    token = added(database, "r1")["r1"]
    with served_hub(database) as hub, robot_of(tmp_path, hub.url, token) as robot:
        wait_for(lambda: link(robot)["commands"], BOUND_S)
        begun = []
        for value, wait in enumerate(("", "?wait=answer", "?wait=close")):
            answer = hub.post(f"/robots/r1/calls{wait}", {"skill": "at_once", "arguments": {"value": value}})
            assert (answer.status_code, answer.links) == (201, {}), f"other numbers at the hub, or {answer.text}"
            call = wait_for(functools.partial(closed_call, hub, answer.headers["Location"]), BOUND_S)
            assert call is not None
            assert call["call_id"] == answer.json()["call_id"], "it has the robot's base until it is closed"
            begun.append(answer)
        path, found = "/robots/r1/calls?limit=1&state=closed", list[str]()
        while path:
            page = hub.get(path)
            found += [call["call_id"] for call in page.json()]
            path = page.links.get("next", {}).get("url", "")
        assert found == [each.json()["call_id"] for each in reversed(begun)]


def test_hub_and_bridge_may_be_away_and_nothing_is_lost(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    token = added(database, "r1")["r1"]
    with served_hub(database) as hub:
        port = int(hub.url.rpartition(":")[2])
        with robot_of(tmp_path, hub.url, token) as robot:
            robot.call("count", label="a", to=3)
        # What came at the very end was shipped at the end.
        assert said(hub, 5) == ["a 1", "a 2", "a 3", "a"]
    with robot_of(tmp_path, hub.url, token) as robot:
        robot.call("count", label="b", to=3)
        trouble = wait_for(lambda: link(robot)["trouble"], BOUND_S)
        assert "can't be reached: Connection refused" in trouble
        assert "at most 10 events behind, nothing acknowledged yet" in HubLinkState.model_validate(link(robot)).text
    with robot_of(tmp_path, hub.url, token) as robot:
        robot.call("count", label="c", to=3)
        with served_hub(database, port=port) as hub:
            found = texts(hub, robot)
            wait_for(lambda: not link(robot)["trouble"], BOUND_S)
    assert found == [text for label in "abc" for text in [*(f"{label} {n}" for n in (1, 2, 3)), label]]


@pytest.mark.parametrize("wrong", ["token", "name"])
def test_a_wrong_token_is_one_line_and_disturbs_no_run(
    tmp_path: Path, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    tokens = added(database, "r1", "r2")
    with (
        served_hub(database) as hub,
        robot_of(tmp_path, hub.url, "no-such-token" if wrong == "token" else tokens["r2"]) as robot,
    ):
        trouble = wait_for(lambda: link(robot)["trouble"], BOUND_S)
        assert trouble.startswith("it refuses: ")
        assert "token" in trouble
        assert robot.call("count", label="a", to=1)["result"] == "a"
        assert hub.get("/healthz").json()["offset"] == 0
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("dimos_streams.bridge.fleet")]
    assert [line for line in lines if "refuses" in line] == [
        f"the hub {hub.url}: {trouble}; the run goes on, and what is new is kept in the journal"
    ]


def test_what_is_no_hub_is_one_line(tmp_path: Path) -> None:
    with served() as other, robot_of(tmp_path, other.url, "some-token") as robot:
        trouble = wait_for(lambda: link(robot)["trouble"], BOUND_S)
        assert trouble.startswith("it refuses: "), trouble
        assert requests.get(other.url + "/calls", timeout=10).json() == []
