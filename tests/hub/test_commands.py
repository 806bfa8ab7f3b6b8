"""Commands go from whoever asks at a hub to a robot, once, and never when they have expired."""

from __future__ import annotations

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
from tests.hub.serving import Robot, ServedHub, added, event, served_hub
from tests.hub.test_shipping import problem


class AnsweringRobot:
    """A robot that reads its commands in a thread, and answers each as it is told."""

    def __init__(self, robot: Robot, hub: ServedHub) -> None:
        self.robot, self.hub = robot, hub
        self.taken: list[dict[str, Any]] = []
        self.replies: dict[str, tuple[int, Any]] = {}
        self.mute = False
        self.connected = threading.Event()
        self.took = threading.Semaphore(0)
        """Released for each command."""
        self._thread = threading.Thread(target=self._work, name=robot.name)

    def _work(self) -> None:
        with contextlib.suppress(requests.RequestException), self.robot.commands(self.hub) as commands:
            self.connected.set()
            for _, command in commands:
                self.taken.append(command)
                self.took.release()
                path = command["path"].partition("?")[0]
                status, body = self.replies.get(path, (200, {"text": f"{self.robot.name} has done it"}))
                if not self.mute:
                    self.robot.answer(self.hub, command["id"], status, body, headers={"Link": '</x>; rel="events"'})

    def start(self) -> None:
        self._thread.start()
        assert self.connected.wait(20)

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()


@contextlib.contextmanager
def answering(hub: ServedHub, *robots: Robot) -> Iterator[list[AnsweringRobot]]:
    """Robots that answer until the hub ends."""
    made = [AnsweringRobot(robot, hub) for robot in robots]
    for each in made:
        each.start()
    yield made


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
            assert hub.post("/calls", {"skill": "r1_move"}).status_code == 201
            assert first.taken[-1]["body"]["skill"] == "move"
            assert hub.post("/calls/c1/cancel").status_code == 200
            assert first.taken[-1]["path"] == "/calls/c1/cancel", "the robot whose call it is"
            problem(hub.post("/calls/nobody/cancel"), 404, "unknown-call")
            stopped = hub.post("/robots/stop", {"reason": "enough"}).json()
            assert stopped["text"] == "r1: r1 has done it; r2: r2 has done it"
            assert second.taken[-1]["body"] == {"robot": "", "reason": "enough"}
            passed = hub.get("/robots/r2/modules?x=1").json()
            assert (passed["text"], second.taken[-1]["path"]) == ("r2 has done it", "/modules?x=1")
            assert [each["connected"] for each in hub.get("/robots").json()] == [True, True]
    for each in (first, second):
        each.join()


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
    answers.join()


@pytest.mark.feature("H2")
def test_a_command_that_nobody_took_in_time_is_never_sent_and_the_hub_says_which_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.hub.http.call_routes.EXPIRES_IN_S", 0.3)
    monkeypatch.setattr("dimos_streams.hub.asking.ANSWER_S", 0.5)
    monkeypatch.setattr("dimos_streams.hub.http.call_routes._BEGUN_WITHIN_S", 0.0)
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        body = {"skill": "move", "robot": "r1"}
        robot.report(hub, "move")
        unsent = problem(hub.post("/calls", body), 503, "robot-unreachable")
        assert "did not take the command within 0.3 s: it was not carried out, and will not be" in unsent["detail"]
        with answering(hub, robot) as (answers,):
            assert answers.taken == []
            answers.mute = True
            silent = problem(hub.post("/calls", {**body, "idempotency_key": "k"}), 504, "robot-silent")
            assert "nobody knows whether it was carried out" in silent["detail"]
            (command,) = answers.taken
            late = {"outcome": "expired", "body": {"detail": "too late"}}
            robot.answer(hub, command["id"], 504, **late)
            expired = problem(hub.post("/calls", {**body, "idempotency_key": "k"}), 503, "robot-unreachable")
            assert "too late" in expired["detail"]
    answers.join()


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
                assert again["expires_at_s"] < before["expires_at_s"], "counted from the stream's own beginning"
                left = began + before["expires_at_s"] - time.clock_gettime(time.CLOCK_BOOTTIME)
                assert left < 10, "by the robot's own clock it is stale no later than by the hub's"
                robot.answer(hub, again["id"], 201, {"call_id": "c"})
        assert asked.result().json() == {"call_id": "c"}


@pytest.mark.feature("H2")
def test_a_command_given_at_one_hub_reaches_a_robot_at_another(postgres_url: str) -> None:
    robot = Robot("r1", added(postgres_url, "r1")["r1"])
    with served_hub(postgres_url) as left, served_hub(postgres_url) as right:
        robot.report(left, "move")
        with answering(left, robot) as (answers,):
            answers.replies["/calls"] = (201, {"call_id": "c9"})
            begun = right.post("/calls", {"skill": "move"})
            assert (begun.status_code, begun.json()) == (201, {"call_id": "c9"})
            assert [each["version"] for each in right.get("/healthz").json()["others"]], "each knows of the other"
    answers.join()


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
