"""A hub's ``/openapi.json`` against what it sends: every answer is one that is declared, and so is its problem."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from jsonschema import Draft202012Validator

from dimos_streams.fleet.batches import encoded_event
from dimos_streams.fleet.lanes import MOST_AT_ONCE
from dimos_streams.hub.storage.calls import CallTable
from dimos_streams.hub.storage.robots import RobotTable
from dimos_streams.hub.storage.rows import StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.serving.server.request_guard import MAX_BODY
from tests.bridge.fleet.test_with_hub import BOUND_S, link, robot_of
from tests.bridge.http.test_openapi import EVERYWHERE, GIVEN_UP, HARD_TO_BRING_ABOUT, HELLO, JSON, Document
from tests.bridge.serving import Served
from tests.helpers import wait_for
from tests.hub.answering_robot import AnsweringRobot
from tests.hub.serving import Robot, ServedHub, added, event, served_hub
from tests.hub.test_commands import short_timeouts

pytestmark = [pytest.mark.feature("H2"), pytest.mark.slow]

Request = tuple[str, str, str, dict[str, Any]]
"""Method, declared path, path, and further arguments of a request."""
BELOW = "/robots/{robot}/{path}"
LARGE = {"data": b"x" * (MAX_BODY + 1), "headers": JSON}
FOREIGN = {"headers": {"Host": "evil.example"}}


@contextlib.contextmanager
def fleet(tmp_path: Path) -> Iterator[tuple[ServedHub, Served, AnsweringRobot]]:
    """A hub with ``r1``, a real bridge, and ``r2``, which answers as it is told."""
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    tokens = added(database, "r1", "r2")
    with served_hub(database) as hub:
        odd = AnsweringRobot(Robot("r2", tokens["r2"]), hub)
        odd.robot.report(hub, "odd", "count")
        odd.start()
        for name, token in tokens.items():
            Robot(name, token, "journal-9").ship(hub, encoded_event(1, event(1, call_id="twice")))
        with robot_of(tmp_path, hub.url, tokens["r1"]) as bridge:
            wait_for(lambda: link(bridge)["commands"], BOUND_S)
            wait_for(lambda: any(each["name"] == "r1_count" for each in hub.get("/skills").json()), BOUND_S)
            yield hub, bridge, odd
    odd.join()


def check(document: Document, hub: ServedHub, request: Request) -> requests.Response:
    method, path, url, more = request
    with requests.request(method, hub.url + url, timeout=20, stream=True, **more) as response:
        if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
            response.content  # noqa: B018 - it is read now
    document.check(path, response)
    declared = document.content["paths"][path][method.lower()]["responses"][str(response.status_code)]
    if response.headers.get("Content-Type", "") == "application/problem+json" and method != "HEAD":
        name = response.json()["type"].rpartition(":")[2]
        assert f"`{name}`" in declared["description"], f"{name} of {method} {url}"
    return response


def looks(begun: str) -> list[Request]:
    """What is read, well and badly."""
    queries = {
        "/healthz": [""],
        "/metrics": [""],
        "/robots": ["", "?x=1"],
        "/skills": ["", "?robot=r1", "?robot=r3", "?robot=%20"],
        "/calls": ["", "?limit=1", "?limit=0", "?before=U", "?robot=r3"],
        "/events": ["", "?limit=2&progress=true", "?limit=0", "?robot=r3", "?call=.."],
        "/tool_streams": ["", "?from=-1", "?robot=r3", "?call=.."],
    }
    below = [
        "r1/healthz",
        "r1/calls?limit=1",
        "r1/calls?limit=0",
        f"r1/calls/{begun}",
        "r1/calls/nobody",
        "r1/tool_streams",
        "r3/healthz",
        "%20/healthz",
    ]
    return [
        *(("GET", path, path + query, {}) for path, given in queries.items() for query in given),
        *(
            ("GET", "/calls/{call_id}", f"/calls/{call}", {})
            for call in (begun, "nobody", "twice", "x?robot=%20", "x?robot=r3")
        ),
        *(("GET", BELOW, f"/robots/{path}", {}) for path in below),
    ]


def calls(begun: str) -> list[Request]:
    """Calls that are begun and cancelled, well and badly, at the hub and below a robot's name."""
    count = {"skill": "count", "arguments": {"label": "a", "to": 1}, "robot": "r1"}
    bodies: list[dict[str, Any]] = [
        count,
        {**count, "robot": None},
        {**count, "robot": "r3"},
        {**count, "arguments": {}},
        {**count, "skill": "nothing"},
        {**count, "agent": "nobody"},
        {**count, "caller": "mcp/x"},
        {**count, "on_duplicate": "x"},
        {"skill": "patrol", "robot": "r1"},
        {"skill": "r1_coun"},
    ]
    plain = [{name: value for name, value in body.items() if name != "robot"} for body in bodies]
    odd: list[dict[str, Any]] = [{"data": b"{", "headers": JSON}, LARGE, {"data": b"{}"}]
    cancel = "/calls/{call_id}/cancel"
    return [
        *(("POST", "/calls", "/calls", {"json": body}) for body in bodies),
        ("POST", "/calls", "/calls?wait=close", {"json": count}),
        *(("POST", BELOW, "/robots/r1/calls", {"json": body}) for body in plain),
        ("POST", BELOW, "/robots/r1/calls?wait=close", {"json": plain[0]}),
        ("POST", BELOW, "/robots/r3/calls", {"json": plain[0]}),
        *(("POST", "/calls", "/calls", more) for more in odd),
        *(("POST", BELOW, "/robots/r1/calls", more) for more in odd),
        *(("POST", cancel, f"/calls/{call}/cancel", {}) for call in ("nobody", "twice", begun)),
        ("POST", cancel, f"/calls/{begun}/cancel?robot=r3", {}),
        *(("POST", cancel, f"/calls/{begun}/cancel", more) for more in ({"json": {"why": 1}}, *odd)),
        *(("POST", BELOW, f"/robots/r1/calls/{call}/cancel", {}) for call in ("nobody", begun)),
    ]  # fmt: skip


_AFTER_A_STANDSTILL = {("post", "/robots/release", "409")}
"""Said only of what waited while the hub stood still, see ``tests.bridge.http.test_turns``."""


def orders() -> list[Request]:
    """Orders to robots, at the hub and below a robot's name."""
    bodies: list[dict[str, Any]] = [
        {},
        {"json": {"robot": "r3"}},
        {"json": {"why": 1}},
        {"data": b"[", "headers": JSON},
    ]
    paths = ("/calls/cancel", "/robots/stop", "/robots/release")
    settings = [{"assignments": [f"worker.{name}=2"]} for name in ("pace", "pac")]
    return [
        *(("POST", path, path, more) for path in paths for more in (*bodies, LARGE, {"data": b"{}"})),
        *(("POST", BELOW, f"/robots/r1{path}", more) for path in paths for more in bodies),
        *(("POST", BELOW, "/robots/r1/settings", {"json": body}) for body in (*settings, {})),
        ("POST", BELOW, "/robots/r1/mcp", {"json": HELLO}),
    ]


def mcp(session: dict[str, str]) -> list[Request]:
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    unknown = {"Mcp-Session-Id": "x"}
    given: list[tuple[str, dict[str, Any]]] = [
        ("POST", {"json": HELLO}),
        ("POST", {"json": ping, "headers": session}),
        ("POST", {"json": ping}),
        ("POST", {"json": ping, "headers": unknown}),
        ("POST", {"json": {"jsonrpc": "2.0", "method": "x"}, "headers": session}),
        ("POST", {"data": b"{", "headers": JSON}),
        ("POST", LARGE),
        ("POST", {"data": b"{}"}),
        ("GET", {"headers": session}),
        ("GET", {"headers": unknown}),
        ("GET", {}),
        ("GET", {"headers": {**session, "Accept": "application/json"}}),
        *(("POST", {"json": each, "headers": session}) for each in GIVEN_UP),
        ("GET", {"headers": {**session, "Last-Event-ID": '["", 0, 9]'}}),
        ("DELETE", {"headers": unknown}),
        ("DELETE", {}),
        ("DELETE", {"headers": session}),
    ]
    return [(method, "/mcp", "/mcp", more) for method, more in given]


def failures(hub: ServedHub, odd: AnsweringRobot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Request]:
    """What goes wrong between the hub and a robot, or its database: each while it is so."""
    asked: list[Request] = [
        ("POST", "/calls", "/calls", {"json": {"skill": "r2_odd"}}),
        ("POST", "/calls/{call_id}/cancel", "/calls/c1/cancel?robot=r2", {}),
        ("POST", BELOW, "/robots/r2/calls", {"json": {"skill": "odd"}}),
        ("GET", BELOW, "/robots/r2/healthz", {}),
    ]
    paths = ("/calls", "/calls/c1/cancel", "/healthz")
    too_large = {"type": "urn:dimos-streams:problem:too-large", "title": "t", "status": 413, "detail": "d"}
    for reply in ((101, None), (413, too_large)):
        odd.replies = dict.fromkeys(paths, reply)
        yield from asked
    with monkeypatch.context() as patch:
        for lane in MOST_AT_ONCE:
            patch.setitem(MOST_AT_ONCE, lane, 0)
        yield from asked
    odd.late = True
    yield from asked
    odd.late, odd.mute = False, True
    with short_timeouts(monkeypatch):
        yield from asked

    def gone(*_: Any, **__: Any) -> Any:
        raise StorageUnavailableError("the database is gone")

    for of, name in ((CallTable, "find"), (CallTable, "newest"), (RobotTable, "all"), (HubStorage, "read_back")):
        monkeypatch.setattr(of, name, gone)
    assert hub.post("/robots/stop").status_code == 503
    yield from asked
    for path in ("/robots", "/skills", "/calls", "/events", "/events?robot=r1", "/tool_streams?robot=r1"):
        yield "GET", path.partition("?")[0], path, {}
    yield "GET", "/calls/{call_id}", "/calls/c1", {}
    for path in ("/calls/cancel", "/robots/stop", "/robots/release"):
        yield "POST", path, path, {}


def test_every_answer_of_a_hub_is_as_it_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fleet(tmp_path) as (hub, bridge, odd):
        document = Document(hub.get("/openapi.json").json())
        bridge.call("count", label="a", to=1)
        begun = bridge.call("follow", wait="answer", description="ann")["call_id"]
        wait_for(lambda: hub.get(f"/calls/{begun}").status_code == 200, BOUND_S)
        session = {"Mcp-Session-Id": hub.post("/mcp", HELLO).headers["Mcp-Session-Id"]}
        for request in [*looks(begun), *calls(begun), *orders(), *mcp(session)]:
            check(document, hub, request)
            if request[0] == "GET":
                check(document, hub, ("HEAD", *request[1:]))
        for path, operations in document.content["paths"].items():
            for method in operations:
                check(document, hub, (method.upper(), path, path.format(robot="r1", path="x", call_id="c"), FOREIGN))
        for request in failures(hub, odd, monkeypatch):
            check(document, hub, request)
        declared = {
            (method, path, status)
            for path, operations in document.content["paths"].items()
            for method, operation in operations.items()
            for status in operation["responses"]
            if method != "head"
        }
        tried = declared - document.met - _AFTER_A_STANDSTILL
        unmet = {each for each in tried if each[2] not in HARD_TO_BRING_ABOUT | EVERYWHERE}
        assert unmet == set()


_CALLS = (
    ("/calls", "get", "200"),
    ("/calls", "post", "201"),
    ("/calls/{call_id}", "get", "200"),
    ("/calls/{call_id}/cancel", "post", "202"),
)


def test_what_a_bridge_has_too_is_described_as_there_and_events_with_their_robot(tmp_path: Path) -> None:
    with fleet(tmp_path) as (hub, bridge, _):
        of_hub, of_bridge = (server.get("/openapi.json").json() for server in (hub, bridge))
        for path, method, status in _CALLS:
            described = [document["paths"][path][method]["responses"][status] for document in (of_hub, of_bridge)]
            assert described[0]["content"] == described[1]["content"], path
        assert of_hub["components"]["schemas"]["CallView"] == of_bridge["components"]["schemas"]["CallView"]
        bridge.call("count", label="a", to=1)
        schema = Draft202012Validator(of_hub["components"]["schemas"]["ToolStreamEvent"])
        served = [each for _, each in hub.events(5)]
        for each in served:
            schema.validate(each)
        assert {each["robot"] for each in served} == {"r1", "r2"}
        assert not schema.is_valid({**served[0], "robot": 1})
