"""Commands go from whoever asks at a hub to a robot, once, and never when they have expired."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from dimos_streams.fleet.batches import encoded_event
from dimos_streams.fleet.lanes import MOST_AT_ONCE
from dimos_streams.fleet.protocol import MAX_EXPIRY_S
from dimos_streams.hub.asking import Asker, BridgeReply, BridgeRequest
from dimos_streams.hub.fleet_view import FleetView
from dimos_streams.hub.storage.calls import CallTable
from dimos_streams.hub.storage.robots import RobotTable
from dimos_streams.hub.storage.rows import (
    RobotCallRow,
    RobotRow,
    StorageUnavailableError,
)
from dimos_streams.hub.threads import PAGES
from tests.helpers import wait_for
from tests.hub.answering_robot import answering
from tests.hub.serving import Robot, ServedHub, added, event, opened_storage, served_hub
from tests.hub.stored import command
from tests.problems import problem


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_call_goes_to_the_robot_that_is_meant_and_its_answer_comes_back(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    one, two = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub:
        one.report(hub, "move", "turn")
        two.report(hub, "move")
        one.ship_events(hub, 1, 2)
        with answering(hub, one, two) as (first, second):
            first.replies["/calls"] = (201, {"call_id": "c9"})
            second.replies["/calls"] = (409, {"type": "x", "title": "t", "status": 409, "detail": "busy"})
            begun = hub.post("/calls?wait=answer", {"skill": "turn", "arguments": {"angle_deg": 30}, "caller": "me"})
            assert (begun.status_code, begun.json()) == (201, {"call_id": "c9"})
            assert begun.headers["Link"] == '</tool_streams?from=3>; rel="events"', "in the hub's sequence"
            (command,) = first.taken
            assert (command["path"], command["role"]) == ("/calls?wait=answer&timeout_s=30.0", "operator")
            # Its events have not come yet.
            first.replies["/calls/c9"] = (200, {"call_id": "c9", "state": "open"})
            assert hub.get("/calls/c9").json() == {"call_id": "c9", "state": "open", "robot": "r1"}
            assert hub.get("/calls/c9?robot=r2").status_code == 404
            assert hub.post("/calls/c9/cancel").status_code == 200
            assert first.taken[-1]["path"] == "/calls/c9/cancel"
            assert second.taken == []
            assert command["body"] == {
                "skill": "turn",
                "arguments": {"angle_deg": 30},
                "caller": "me",
                "lease_wait_s": 0,
            }
            assert 0 < command["expires_at_s"] < 40
            several = problem(hub.post("/calls", {"skill": "move"}), 409, "robot-needed")
            assert "give `robot`, one of r1, r2" in several["detail"]
            refused = hub.post("/calls", {"skill": "move", "robot": "r2"})
            assert (refused.status_code, refused.json()["detail"]) == (409, "busy"), "the bridge's own words"
            assert refused.headers["Content-Type"] == "application/problem+json"
            near = problem(hub.post("/calls", {"skill": "r1_turm"}), 404, "unknown-skill")
            assert "did you mean 'r1_turn'" in near["detail"]
            problem(hub.post("/calls", {"skill": "move", "robot": "r3"}), 404, "unknown-robot")
            assert [each["name"] for each in hub.get("/skills?robot=r1").json()] == ["r1_move", "r1_turn"]
            for name in ("r1_move", "r1/move", "/r1/move"):
                assert hub.post("/calls", {"skill": name}).status_code == 201
                assert first.taken[-1]["body"]["skill"] == "move"
            assert hub.post("/calls/c1/cancel").status_code == 200
            assert first.taken[-1]["path"] == "/calls/c1/cancel", "the robot whose call it is"
            problem(hub.post("/calls/nobody/cancel"), 404, "unknown-call")
            stopped = hub.post("/robots/stop", {"reason": "enough"}).json()
            assert stopped["text"] == "r1: r1 has done it\nr2: r2 has done it"
            assert second.taken[-1]["body"] == {"robot": "", "reason": "enough"}
            passed = hub.get("/robots/r2/modules?x=1").json()
            assert (passed["text"], second.taken[-1]["path"]) == ("r2 has done it", "/modules?x=1")
            assert [each["connected"] for each in hub.get("/robots").json()] == [True, True]
    for each in (first, second):
        each.join()


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_the_same_key_asks_for_the_same_command_whatever_became_of_who_asked(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.report(hub, "move")
        body = {"skill": "move", "idempotency_key": "k", "caller": "me"}
        with answering(hub, robot) as (answers,), ThreadPoolExecutor(2) as pool:
            answers.replies["/calls"] = (201, {"call_id": "c9"})
            asked = [pool.submit(hub.post, "/calls", body) for _ in range(2)]
            assert [each.result().json() for each in asked] == [{"call_id": "c9"}] * 2
            other = problem(hub.post("/calls", {**body, "arguments": {"x": 1}}), 409, "command-refused")
            assert "was used for another command" in other["detail"]
            assert len(answers.taken) == 1
            longer = hub.post("/calls?wait=close&timeout_s=9", {**body, "lease_wait_s": 1})
            assert longer.status_code == 201, "how a request waits is not what its call is"
            assert answers.taken[-1]["body"]["idempotency_key"] == "k", "by which the bridge knows the call again"
    answers.join()


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_command_that_nobody_took_in_time_is_never_sent_and_the_hub_says_which_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        body = {"skill": "move", "robot": "r1"}
        robot.report(hub, "move")
        with monkeypatch.context() as patch:
            patch.setattr("dimos_streams.hub.asking._EXPIRES_IN_S", 0.3)
            unsent = _unsent(hub, body)
        assert "did not take the command within 0.3 s: it was not carried out, and will not be" in unsent["detail"]
        with answering(hub, robot) as (answers,):
            assert answers.taken == []
            answers.mute = True
            with short_timeouts(monkeypatch):
                silent = problem(hub.post("/calls", {**body, "idempotency_key": "k"}), 504, "robot-silent")
            assert "nobody knows whether it was carried out" in silent["detail"]
            assert answers.took.acquire(timeout=20)
            _let_expire(database)
            (command,) = answers.taken
            answers.mute, answers.late = False, True
            expired = problem(hub.post("/calls", {**body, "idempotency_key": "k"}), 503, "robot-unreachable")
            assert "too late" in expired["detail"]
            assert [each["key"] for each in answers.taken] == [command["key"]] * 2, "the robot is asked again"
            answers.late = False
            done = hub.post("/calls", {**body, "idempotency_key": "k"})
            assert done.json()["text"] == "r1 has done it"
    answers.join()


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_key_is_free_where_nothing_was_begun_and_bound_where_nobody_knows(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = Robot("r1", added(database_url, "r1")["r1"])
    body = {"skill": "move", "robot": "r1", "caller": "me", "idempotency_key": "k"}
    with served_hub(database_url) as hub:
        robot.report(hub, "move")
        with monkeypatch.context() as patch:
            patch.setattr("dimos_streams.hub.asking._EXPIRES_IN_S", 0.3)
            _unsent(hub, body)
        with answering(hub, robot) as (answers,):
            for status, kind in ((503, "skill-unavailable"), (409, "call-rejected"), (422, "bad-arguments")):
                answers.replies["/calls"] = (status, {"type": f"urn:dimos-streams:problem:{kind}", "status": status})
                problem(hub.post("/calls", {**body, "arguments": {"status": status}}), status, kind)
                assert answers.took.acquire(timeout=20)
            answers.mute = True
            with short_timeouts(monkeypatch):
                problem(hub.post("/calls", body), 504, "robot-silent")
            assert answers.took.acquire(timeout=20)
            _let_expire(database_url)
            other = problem(hub.post("/calls", {**body, "arguments": {"x": 1}}), 409, "command-refused")
            assert "idempotency key 'k' was used for another command" in other["detail"]
            answers.mute = False
            answers.replies["/calls"] = (201, {"call_id": "c9"})
            assert hub.post("/calls", body).json() == {"call_id": "c9"}
            count = len(answers.taken)
            assert hub.post("/calls", body).json() == {"call_id": "c9"}
            assert len(answers.taken) == count, "the hub knows what became of it"
            for waited in ("timed_out", "close"):  # it waits once more
                answers.replies["/calls"] = (201, {"call_id": "c9", "waited": waited})
                answer = hub.post("/calls?wait=close&timeout_s=20", body)
                assert (answer.status_code, answer.json()) == (201, {"call_id": "c9", "waited": waited})
    answers.join()


@pytest.mark.feature("H2")
def test_requests_that_wait_for_a_robot_are_answered_when_their_hub_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with ThreadPoolExecutor(1) as pool:
        with served_hub(database) as hub:
            robot.report(hub, "move")
            with answering(hub, robot) as (answers,):
                answers.mute = True
                asked = pool.submit(hub.post, "/calls?wait=close", {"skill": "move"})
                assert answers.took.acquire(timeout=20)
        assert "the hub ends" in problem(asked.result(), 503, "hub-unavailable")["detail"]
    answers.join()
    assert "timeout graceful shutdown exceeded" not in caplog.text


@pytest.mark.feature("H2")
def test_the_newest_stream_of_a_robot_counts_and_gets_what_is_not_answered(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub, ThreadPoolExecutor(1) as pool:
        robot.report(hub, "move")
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        with robot.commands(hub) as first:
            asked = pool.submit(hub.post, "/calls", {"skill": "move"})
            _, before = next(first)
            with robot.commands(hub) as second:
                assert list(first) == [], "another one has begun"
                _, again = next(second)
                assert (again["id"], again["key"]) == (before["id"], before["key"])
                assert again["stream"] != before["stream"], "each has the one that it was sent on"
                assert again["expires_at_s"] < before["expires_at_s"], "counted from the stream's own beginning"
                left = began + before["expires_at_s"] - time.clock_gettime(time.CLOCK_BOOTTIME)
                assert left < 10, "by the robot's own clock it is stale no later than by the hub's"
                robot.answer(hub, again["id"], 201, {"call_id": "c"})
        assert asked.result().json() == {"call_id": "c"}


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_command_given_at_one_hub_reaches_a_robot_at_another(postgres_url: str) -> None:
    robot = Robot("r1", added(postgres_url, "r1")["r1"])
    with served_hub(postgres_url) as left, served_hub(postgres_url) as right:
        (before,) = right.get("/robots").json()
        assert (before["connected"], before["skills"]) == (False, 0), "what it has seen is no reason to refuse later"
        robot.report(left, "move")
        with answering(left, robot) as (answers,):
            answers.replies["/calls"] = (201, {"call_id": "c9"})
            begun = right.post("/calls", {"skill": "move"})
            assert (begun.status_code, begun.json()) == (201, {"call_id": "c9"})
            assert [each["version"] for each in right.get("/healthz").json()["others"]], "each knows of the other"
    answers.join()


@pytest.mark.parametrize(
    ("timeout_s", "lease_wait_s", "expires_in_s"),
    [(None, 0.0, 10.0), (30.0, 0.0, 10.0), (4.0, 0.0, 4.0), (4.0, 3.0, 7.0), (2.0, 0.0, 2.0), (0.0, 0.0, 2.0)],
)
def test_a_robot_that_is_gone_is_waited_for_no_longer_than_who_asks_waits(
    timeout_s: float | None, lease_wait_s: float, expires_in_s: float
) -> None:
    request = BridgeRequest("r1", "POST", "/calls", timeout_s=timeout_s, lease_wait_s=lease_wait_s)
    assert request.expires_in_s == expires_in_s


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_who_asks_waits_as_long_as_they_have_said_and_hears_what_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.hub.asking._MARGIN_S", 0.4)
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.report(hub, "move")
        body = {"skill": "move", "idempotency_key": "k"}
        unsent = _unsent(hub, {"skill": "move"}, "?wait=close&timeout_s=0.1")
        assert "was not carried out, and will not be" in unsent["detail"]
        with answering(hub, robot) as (answers,):
            answers.mute = True
            monkeypatch.setattr("dimos_streams.hub.asking._MARGIN_S", 4.0)
            with ThreadPoolExecutor(2) as pool:
                began = time.monotonic()
                asked = [
                    pool.submit(hub.post, "/calls?wait=close&timeout_s=0.1", body),
                    pool.submit(hub.post, "/robots/r1/calls?wait=answer&timeout_s=0.1", body),
                ]
                for each in asked:
                    problem(each.result(), 504, "robot-silent")
                assert time.monotonic() - began < 15, "and not the time that commands are valid besides"
            assert len(answers.taken) == 2
            for command in answers.taken:
                robot.answer(hub, command["id"], 201, {"call_id": "c9"})
            late = hub.post("/calls?wait=close&timeout_s=0.1", body)
            assert (late.status_code, late.json()) == (201, {"call_id": "c9"}), "an answer that comes later is kept"
    answers.join()


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_stopping_has_room_and_goes_first_where_other_commands_fill_all_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MOST_AT_ONCE, "others", 3)
    monkeypatch.setattr("dimos_streams.hub.asking._EXPIRES_IN_S", 60.0)
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    orders = ("/robots/stop", "/robots/release", "/calls/c1/cancel")
    with served_hub(database) as hub, ThreadPoolExecutor(4) as pool, opened_storage(database) as storage:
        first, *others = [storage.commands.give(command(f"{number}")) for number in range(3)]
        assert isinstance(first, int)
        assert others == [first + 1, first + 2]
        robot.ship(hub, encoded_event(1, event(1, type="open", call_id="c1")))
        robot.report(hub, "move")
        refused = problem(hub.post("/calls", {"skill": "r1_move"}), 409, "command-refused")
        assert "3 commands (others) for robot 'r1' wait already" in refused["detail"]
        asked = [pool.submit(hub.post, path) for path in orders] + [pool.submit(hub.get, "/robots/r1/healthz")]
        wait_for(lambda: len(storage.commands.states(range(first, first + 20))) >= 7)
        with robot.commands(hub) as commands:
            taken = [next(commands)[1] for _ in range(7)]
            assert {each["path"] for each in taken[:3]} == set(orders), "before all others"
            for each in taken:
                if each["path"] != "/calls":
                    robot.answer(hub, each["id"], 200, {"text": "done"})
            assert [each.result().status_code for each in asked] == [200] * 4


@pytest.mark.feature("H2")
def test_a_stop_is_confirmed_only_by_robots_and_misses_none(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    with served_hub(database) as hub:
        nobody = hub.post("/robots/stop").json()
        assert nobody == {"robots": {}, "confirmed": False, "text": "there is no robot"}
        robot = Robot("r1", added(database, "r1")["r1"])
        with answering(hub, robot) as (answers,):
            stopped = hub.post("/robots/stop").json()
            assert (list(stopped["robots"]), stopped["confirmed"]) == (["r1"], True), "added just now"
            assert [each["path"] for each in answers.taken] == ["/robots/stop"]
            assert hub.post("/robots/stop", {"robot": "r1"}).json()["confirmed"]
            for unclear in ({}, {"confirmed": 1}, {"x": "done"}):
                answers.replies["/robots/stop"] = 200, unclear
                assert not hub.post("/robots/stop").json()["confirmed"]
            assert hub.post("/robots/stop").json()["text"] == "r1: NOT CONFIRMED: its answer does not say so"
            answers.replies["/robots/stop"] = 409, {"confirmed": True, "detail": "not now"}
            refused = hub.post("/robots/stop").json()
            assert (refused["confirmed"], refused["text"]) == (False, "r1: REFUSED: not now")
    answers.join()


@pytest.mark.feature("H2")
def test_a_path_reaches_a_robot_as_it_was_asked_for(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    paths = ["/calls/a%3Fwait=close/cancel", "/calls/50%25/cancel", "/calls/a:b@c,d", "/calls/%C3%A9%20e?x=1%3F"]
    with served_hub(database) as hub, answering(hub, robot) as (answers,):
        for path in paths:
            assert hub.get(f"/robots/r1{path}").status_code == 200
        assert [each["path"] for each in answers.taken] == paths
    answers.join()


@pytest.mark.feature("H2")
def test_no_robot_is_told_the_token_of_operators(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database, token="operators-token") as hub:
        with answering(hub, robot) as (answers,):
            for query in ("?x=1&token=operators-token", "?%74oken=operators-token&x=1"):
                assert hub.get(f"/robots/r1/modules{query}").status_code == 200
        assert [each["path"] for each in answers.taken] == ["/modules?x=1"] * 2
    answers.join()


@pytest.mark.feature("H2")
def test_no_order_waits_for_those_who_read_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    reading, over = threading.Semaphore(0), threading.Event()

    def read(*args: Any, **kwargs: Any) -> list[RobotCallRow]:
        reading.release()
        assert over.wait(20)
        return []

    monkeypatch.setattr(CallTable, "newest", read)
    with served_hub(database) as hub, ThreadPoolExecutor(2 * PAGES) as readers:
        robot.ship(hub, encoded_event(1, event(1, type="open", call_id="c1")))
        with answering(hub, robot) as (answers,):
            pages = [readers.submit(hub.get, "/calls") for _ in range(2 * PAGES)]
            try:
                for _ in range(PAGES):
                    assert reading.acquire(timeout=20)
                for path in ("/robots/stop", "/robots/release"):
                    assert hub.post(path).json()["confirmed"], "while all threads that read are taken"
                assert hub.post("/calls/c1/cancel").status_code == 200
                other = Robot("r2", added(database, "r2")["r2"])
                assert other.report(hub, "move").status_code == 200, "with a token that was not seen before"
                assert robot.ship_events(hub, 2, 3).status_code == 200
                assert not reading.acquire(blocking=False), "no more are read at once"
            finally:
                over.set()
            assert [page.result().status_code for page in pages] == [200] * 2 * PAGES
    answers.join()


@pytest.mark.feature("H2")
def test_robots_are_read_again_after_a_read_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    added(database, "r1")

    async def read(robots: FleetView) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setattr(storage.robots, "all", _unavailable)
            for _ in range(2):
                with pytest.raises(StorageUnavailableError):
                    await robots.all()
        return list(await robots.all())

    with opened_storage(database) as storage, ThreadPoolExecutor(1) as pool:
        assert asyncio.run(read(FleetView(storage, pool))) == ["r1"]


@pytest.mark.feature("H2")
def test_a_stop_reads_the_robots_once_for_all_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    names = list(added(database, *(f"r{number}" for number in range(10, 30))))
    read, reads = RobotTable.all, itertools.count()

    def counted(robots: RobotTable) -> list[RobotRow]:
        next(reads)
        return read(robots)

    async def answered(*_: object) -> BridgeReply:
        return BridgeReply(200, {"confirmed": True, "text": "held"}, {})

    monkeypatch.setattr(RobotTable, "all", counted)
    monkeypatch.setattr(Asker, "ask", answered)
    monkeypatch.setattr("dimos_streams.hub.fleet_view._FRESH_S", 60.0)
    with opened_storage(database) as storage:
        with storage.engine.transaction() as db:
            db.run("UPDATE robots SET heard = 1")
        for name in names[::2]:
            storage.robots.connect(name, "s", "process", 60)
    with served_hub(database) as hub:
        replies = hub.post("/robots/stop").json()["robots"]
    assert [name for name in names if replies[name]["confirmed"]] == names[::2]
    assert next(reads) <= 4, "the hub's own, the order's, the one of the first that is gone, and one for all others"


@pytest.mark.feature("H2")
def test_who_only_looks_does_not_wait_for_long_for_a_robot_that_is_not_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    added(database, "r1")
    asked: list[BridgeRequest] = []

    async def answered(_: Asker, request: BridgeRequest) -> BridgeReply:
        asked.append(request)
        return BridgeReply(200, {}, {})

    monkeypatch.setattr(Asker, "ask", answered)
    with served_hub(database) as hub, opened_storage(database) as storage:
        hub.get("/robots/r1/metrics")
        hub.post("/robots/r1/calls", {"skill": "move"})
        storage.robots.connect("r1", "s", "process", 60)
        hub.get("/robots/r1/metrics")
    assert [request.expires_in_s for request in asked] == [3.0, 10.0, 10.0]


def _unavailable(*_: Any) -> list[RobotRow]:
    raise StorageUnavailableError("the hub's database is down")


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_command_that_can_not_be_one_holds_up_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub, opened_storage(database) as storage:
        longer = command("long", expires_in_s=MAX_EXPIRY_S + 60.0)
        id = storage.commands.give(longer)
        assert isinstance(id, int)
        assert isinstance(storage.commands.give(command("next")), int)
        with robot.commands(hub) as commands:
            assert next(commands)[1]["key"] == "next"
            assert isinstance(storage.commands.give(command("later")), int)
            assert next(commands)[1]["key"] == "later"
    assert f"command {id} for robot 'r1' is none, and is not sent: it would be valid for 3" in caplog.text


@contextlib.contextmanager
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Who asks waits for a moment only, and the robot has all the time to take the command."""
    with monkeypatch.context() as patch:
        patch.setattr(BridgeRequest, "within_s", property(lambda _: 0.5))
        patch.setattr(BridgeRequest, "expires_in_s", property(lambda _: 60.0))
        yield


def _unsent(hub: ServedHub, body: dict[str, Any], query: str = "") -> dict[str, Any]:
    """The refusal of a command for a robot that is not there. A machine that is held up writes none down in time."""
    while (answer := hub.post(f"/calls{query}", body)).json()["type"].endswith(":hub-unavailable"):
        pass
    return problem(answer, 503, "robot-unreachable")


def _let_expire(database: str) -> None:
    """Let the commands that are there expire, however long they were valid."""
    with opened_storage(database) as storage, storage.engine.transaction() as db:
        db.run("UPDATE commands SET expires = given WHERE answered IS NULL")


def test_lists_of_calls_have_pages(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.ship(hub, *(encoded_event(n, event(n, type="open", call_id=f"c{n}")) for n in range(1, 6)))
        path = "/calls?limit=2"
        found: list[str] = []
        for _ in itertools.repeat(None, 5):
            page = hub.get(path)
            found = [call["call_id"] for call in page.json()] + found
            path = page.links.get("next", {}).get("url", "")
            if not path:
                break
        assert found == ["c1", "c2", "c3", "c4", "c5"]
        assert hub.get("/calls/c3").json()["robot"] == "r1"
        problem(hub.get("/calls/c9"), 404, "unknown-call")


def test_who_asks_a_hub_for_what_only_bridges_have_is_led_on(tmp_path: Path) -> None:
    with served_hub(f"sqlite:///{tmp_path}/hub.sqlite") as hub:
        for path, instead in (("/modules", "GET /robots/ROBOT/modules"), ("/live", "own bridge")):
            assert instead in problem(hub.get(path), 404, "not-found")["detail"]


@pytest.mark.feature("H2")
def test_who_asks_for_headers_of_a_robots_bridge_orders_nothing_there(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub, answering(hub, robot) as (answers,):
        for path in ("/robots/stop", "/calls/c1/cancel", "/healthz"):
            head = requests.head(f"{hub.url}/robots/r1{path}", timeout=20)
            assert (head.status_code, head.content) == (200, b"")
        assert [each["method"] for each in answers.taken] == ["GET"] * 3, "what may not be read the robot refuses"
    answers.join()
