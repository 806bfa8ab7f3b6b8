"""What a hub passes on of a robot's answers, and where it leads those who have begun a call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.fleet.batches import encoded_event
from dimos_streams.hub.asking import BridgeReply
from dimos_streams.hub.http.relaying import headers_below, relay
from dimos_streams.hub.http.robots import order_report
from dimos_streams.hub.storage.calls import CallTable
from dimos_streams.hub.storage.rows import RobotCallRow, StorageUnavailableError, WrongSchemaError
from dimos_streams.serving.problems import ProblemError
from tests.hub.answering_robot import answering
from tests.hub.serving import Robot, added, event, served_hub
from tests.problems import problem


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 101},
        {"status": 307, "headers": {"Location": "http://elsewhere/"}},
        {"status": 401},
        {"status": 304},
        {"status": 204, "body": {"text": "x"}},
        {"headers": {"Location": "/x\r\nSet-Cookie: a=b"}},
        {"headers": {"Location": "//elsewhere/"}},
        {"headers": {"Link": '<http://elsewhere/>; rel="next"'}},
        {"headers": {"Location": "/\u0100"}},
        {"status": 201, "headers": {"Location": "/calls/../../robots/robot1/calls"}},
        {"status": 201, "headers": {"Location": "/calls/%2e%2E"}},
        {"status": 201, "headers": {"Location": "/calls/c1%2F..%2F..%2Frobots"}},
        {"status": 201, "headers": {"Location": "/calls/c1?x=1"}},
        {"status": 201, "headers": {"Location": "/calls/c1/cancel"}},
        {"status": 201, "headers": {"Location": "/robots/robot1/calls"}},
        {"headers": {"Link": '</calls/../robots/robot1/calls>; rel="next"'}},
        {"headers": {"Link": '</robots/robot1/calls?limit=1>; rel="next"'}},
    ],
)
def test_a_robot_can_not_speak_for_the_hub(answer: dict[str, Any]) -> None:
    given = {"status": 200, "headers": {}, "body": None, **answer}
    with pytest.raises(ProblemError, match="robot 'r1' has answered with what a hub does not pass on") as caught:
        relay("r1", BridgeReply(**given))
    assert caught.value.status_code == 502


@pytest.mark.parametrize(
    ("status", "body", "confirmed", "text"),
    [
        (200, {"text": "held\nr2: held", "confirmed": True}, True, "held r2: held"),
        (200, {"text": "held\u2028r2: held"}, False, "held r2: held"),
        (200, {"text": ["held"], "confirmed": True}, False, "NOT CONFIRMED: its answer does not say so"),
        (409, {"detail": "busy\r\nr2: held", "confirmed": True}, False, "REFUSED: busy r2: held"),
        (200, {"text": "x" * 9000, "confirmed": True}, True, f"{'x' * 1997}..."),
    ],
)
def test_what_a_robot_says_of_an_order_looks_like_no_other_one_s_answer(
    status: int, body: dict[str, Any], confirmed: bool, text: str
) -> None:
    report = order_report(BridgeReply(status, body, {}))
    assert (report["confirmed"], report["text"]) == (confirmed, text)


@pytest.mark.parametrize(
    "headers",
    [
        {"Location": "/calls/c1:a.b~2-3"},
        {"Location": "/calls/a%3Ab", "Link": '</tool_streams?from=9>; rel="events"'},
        {"Link": '</calls?limit=1&before=7-a>; rel="next"'},
    ],
)
def test_what_a_bridge_gives_leads_to_it(headers: dict[str, str]) -> None:
    assert relay("r1", BridgeReply(201, None, headers)).headers == headers


@pytest.mark.parametrize(
    ("headers", "below"),
    [
        ({"Location": "/calls/c1"}, {"Location": "/robots/r1/calls/c1"}),
        (
            {"Link": '</calls?limit=1&before=7-a>; rel="next"'},
            {"Link": '</robots/r1/calls?limit=1&before=7-a>; rel="next"'},
        ),
        (
            {"Location": "/calls/a%3Ab", "Link": '</tool_streams?from=9>; rel="events"'},
            {"Location": "/robots/r1/calls/a%3Ab"},
        ),
        ({"Location": "/calls/c1/cancel", "Link": '</events?before=9>; rel="next"'}, {}),
        ({"Location": "/calls/a%2F..%2F..%2Frobots"}, {}),
        ({"Location": "/calls/..", "Link": '</calls/%2e%2e>; rel="next"'}, {}),
        ({"Location": "/calls/.", "Link": '</calls/.%2E?limit=1>; rel="next"'}, {}),
        ({"Location": "/calls/..a"}, {"Location": "/robots/r1/calls/..a"}),
    ],
)
def test_headers_of_a_robots_bridge_lead_to_it_or_nowhere(headers: dict[str, str], below: dict[str, str]) -> None:
    assert headers_below("r1", headers) == below


@pytest.mark.slow
def test_what_a_robot_may_not_say_is_a_problem_that_names_it(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.report(hub, "move")
        with answering(hub, robot) as (answers,):
            answers.replies["/calls"] = (101, None)
            refusal = problem(hub.post("/calls", {"skill": "r1_move"}), 502, "robot-answer")
            assert "robot 'r1' has answered" in refusal["detail"]
            answers.replies["/calls"] = (204, None)
            assert hub.post("/calls", {"skill": "r1_move"}).status_code == 204
    answers.join()


@pytest.mark.feature("H2")
def test_who_asks_for_a_call_again_is_led_to_its_first_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    one, two = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub, answering(hub, one, two) as (answers, other):
        two.ship(hub, *(encoded_event(n, event(n, call_id="c9")) for n in (1, 2)))
        assert len(hub.events(2)) == 2
        answers.replies["/calls"] = (201, {"call_id": "c9"})
        body = {"skill": "move", "robot": "r1", "caller": "me", "idempotency_key": "k"}
        begun = hub.post("/calls", body)
        one.ship(
            hub, *(encoded_event(n, event(n, type="open" if n == 1 else "update", call_id="c9")) for n in (1, 2))
        )
        assert len(hub.events(4)) == 4
        for again in (hub.post("/calls", body), hub.post("/calls?wait=answer", body)):
            assert (again.status_code, again.links) == (201, begun.links), "another robot's c9 is another call"
        (_, first), *_ = hub.events(1, begun.links["events"]["url"].removeprefix("/tool_streams"))
        assert (first["robot"], first["type"], first["call_id"]) == ("r1", "open", "c9")
        for why in (StorageUnavailableError("it is down"), WrongSchemaError("its tables are newer")):
            monkeypatch.setattr(CallTable, "find", _raising(why))
            unknown = hub.post("/calls", body)
            assert unknown.json() == {"call_id": "c9"}, "it has begun, whatever the database says"
            assert unknown.links["events"]["url"] == "/tool_streams?from=5", "what comes next"
    for each in (answers, other):
        each.join()


@pytest.mark.feature("H2")
def test_a_new_call_is_not_looked_for_in_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub, answering(hub, robot) as (answers,):
        robot.ship_events(hub, 1, 2)
        assert len(hub.events(2)) == 2
        monkeypatch.setattr(CallTable, "find", _raising(AssertionError("it is looked for")))
        answers.replies["/calls"] = (201, {"call_id": "c9"})
        begun = hub.post("/calls", {"skill": "move", "robot": "r1"})
        assert (begun.status_code, begun.links["events"]["url"]) == (201, "/tool_streams?from=3")
    answers.join()


@pytest.mark.feature("H2")
def test_a_call_that_has_begun_waits_for_no_database_that_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    over = threading.Event()

    def silent(*_: object) -> list[RobotCallRow]:
        assert over.wait(10)
        return []

    with served_hub(database) as hub, answering(hub, robot) as (answers,):
        answers.replies["/calls"] = (201, {"call_id": "c9"})
        monkeypatch.setattr("dimos_streams.hub.http.robot_calls.ORDER_WAITS_S", 0.05)
        monkeypatch.setattr(CallTable, "find", silent)
        body = {"skill": "move", "robot": "r1", "caller": "me", "idempotency_key": "k"}
        assert hub.post("/calls", body).json() == {"call_id": "c9"}
        over.set()
    answers.join()


def _raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail
