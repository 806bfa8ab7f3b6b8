"""Calls that have begun and of which no event has come yet, at whichever hub they are asked for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import pytest

from dimos_streams import clock
from dimos_streams.fleet.commands import Answer
from dimos_streams.hub.mcp_calls import FleetCalls
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.calls import CallTable
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.tool_stream.gateway import CallView
from tests.bridge.mcp.test_mcp import INITIALIZE
from tests.bridge.mcp.test_sessions import call, cancelled
from tests.hub.answering_robot import answering
from tests.hub.serving import TIMEOUT_S, Robot, added, served_hub
from tests.hub.stored import clock_owner, command, due, opened
from tests.hub.test_mcp import use
from tests.problems import problem


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_call_begun_at_one_hub_is_asked_for_and_cancelled_at_another(postgres_url: str) -> None:
    robot = Robot("r1", added(postgres_url, "r1")["r1"])
    with served_hub(postgres_url) as left, served_hub(postgres_url) as right, answering(left, robot) as (answers,):
        answers.replies["/calls"] = (201, {"call_id": "c9"})
        answers.replies["/calls/c9"] = (200, {"call_id": "c9", "state": "open"})
        assert left.post("/calls", {"skill": "move", "robot": "r1"}).status_code == 201
        assert right.get("/calls/c9").json() == {"call_id": "c9", "state": "open", "robot": "r1"}
        assert right.post("/calls/c9/cancel").status_code == 200
        assert answers.taken[-1]["path"] == "/calls/c9/cancel"
    answers.join()


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_call_begun_at_its_robots_bridge_is_one_of_the_fleet_at_once(tmp_path: Path) -> None:
    """The hub does not note whose it is, as it does for one that was begun at ``/calls``."""
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1", "r2")["r1"])
    with served_hub(database) as hub:
        robot.report(hub, "move")
        with answering(hub, robot) as (answers,):
            answers.replies["/calls"] = (201, {"call_id": "c9"})
            view = CallView(
                call_id="c9", skill="move", module="m", caller="me", parent="", arguments={}, state="open"
            ).model_dump()
            answers.replies["/calls/c9"] = (200, view)
            assert hub.post("/robots/r1/calls", {"skill": "move"}).status_code == 201
            assert hub.get("/calls/c9").json()["robot"] == "r1"
            assert not use(hub, "get_call", call_id="c9")["isError"]
            assert hub.post("/calls/c9/cancel").status_code == 200
            assert answers.taken[-1]["path"] == "/calls/c9/cancel"
            problem(hub.get("/calls/c9?robot=r2"), 404, "unknown-call")
            unknown = problem(hub.get("/calls/c8"), 404, "unknown-call")
            assert "no event of one has come, and none was begun through a hub of this fleet" in unknown["detail"]
            answers.replies["/calls/c9"] = (101, None)
            silent = problem(hub.get("/calls/c9"), 404, "unknown-call")["detail"]
            assert silent.startswith("call 'c9' was begun at robot 'r1', and no event of it has come; ask again: ")
    answers.join()


@pytest.mark.feature("H2")
def test_a_call_is_found_by_the_answer_that_named_it(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(database_url) as storage:
        assert storage.calls.begun_at("c_1") == []
        given: list[tuple[str, str, dict[str, Any]]] = [
            ("r1", "/calls?wait=answer", {"call_id": "c_1", "text": "on it"}),
            ("r2", "/calls", {"call_id": "c2", "text": "it says", "result": {"call_id": "c_1"}}),
            ("r3", "/calls/c_1/cancel", {"call_id": "c_1"}),
            ("r4", "/calls", {"call_id": "cx1"}),
            ("r5", "/calls", {"call_id": "c_1"}),
            ("r5", "/calls", {"call_id": "c_1"}),
        ]
        for number, (robot, path, body) in enumerate(given):
            _answered(storage, robot, f"k{number}", path, body)
        assert storage.calls.begun_at("c_1") == ["r5", "r1"]
        with monkeypatch.context() as patch:
            patch.setattr("dimos_streams.hub.storage.calls._LATELY", 2)
            assert storage.calls.begun_at("c_1") == ["r5"]
    with opened(database_url) as storage:
        _answered(storage, "r6", "later", "/calls", {"call_id": "c6"})
        assert storage.calls.begun_at("c_1") == ["r5", "r1"], "a hub that begins leaves out a million numbers"


@pytest.mark.feature("H2")
def test_a_call_is_found_by_its_key_as_soon_as_its_robot_has_answered(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(database_url) as storage:
        storage.robots.add("r1")
        assert storage.calls.begun_with("k1") == (None, False)
        storage.commands.give(command("k1", robot="r1", path="/calls"))
        assert storage.calls.begun_with("k1") == (None, True)
        _answered(storage, "r1", "k1", "/calls", {"call_id": "c1"})
        _answered(storage, "r1", "k2", "/calls", {"detail": "refused"})
        _answered(storage, "r1", "k3", "/calls", {"call_id": 3})
        assert storage.calls.begun_with("k1") == (("r1", "c1"), False)
        assert storage.calls.begun_with("k2") == storage.calls.begun_with("k3") == (None, False)
        storage.commands.give(command("k5", robot="r1", path="/calls", expires_in_s=60.0))
        assert [each.path for each in due(storage, "stream-1")] == ["/calls"]
        storage.commands.give(command("k4", robot="r1", path="/calls", expires_in_s=60.0))
        assert storage.calls.begun_with("k4") == (None, True)
        later = storage.now() + 61_000_000
        monkeypatch.setattr(clock_owner(storage), "now", lambda _: later)
        assert storage.calls.begun_with("k4") == (None, False), "no robot has taken it in time"
        assert storage.calls.begun_with("k5") == (None, True), "its robot has it, and may be without a link"


@pytest.mark.virtual_time
@pytest.mark.feature("H2")
async def test_a_call_on_its_way_to_its_robot_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([(None, True), (None, True), ("c1", False), (None, False)])

    async def look(*_: Any) -> tuple[str | None, bool]:
        return next(looks, (None, True))

    monkeypatch.setattr("dimos_streams.hub.mcp_calls.begun_with", look)
    calls = FleetCalls(cast(HubParts, None))
    assert [await calls.begun_with("mcp/me", "k") for _ in range(3)] == ["c1", None, None]


@pytest.mark.virtual_time
@pytest.mark.feature("H2")
async def test_a_request_that_its_cancel_has_overtaken_on_the_way_to_another_hub_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun_at, looks = clock.monotonic() + 4.0, 0

    async def look(parts: HubParts, caller: str, key: str) -> tuple[str | None, bool]:
        nonlocal looks
        looks += 1
        begins_at = begun_at if key == "late" else math.inf
        return ("c1", False) if clock.monotonic() >= begins_at + 1.0 else (None, clock.monotonic() >= begins_at)

    monkeypatch.setattr("dimos_streams.hub.mcp_calls.begun_with", look)
    calls = FleetCalls(cast(HubParts, None))
    assert await calls.begun_with("mcp/me", "late") == "c1"
    looks, since = 0, clock.monotonic()
    assert await calls.begun_with("mcp/me", "never") is None
    assert looks < 10, "clients may cancel many that never come"
    assert clock.monotonic() - since < 10.0


@pytest.mark.feature("H2")
def test_a_hub_ends_the_call_of_a_request_that_the_hub_before_it_has_taken(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot, other = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub:
        assert other.ship_events(hub, 1, 1).ok  # of a call that is called like the one which is meant
        robot.report(hub, "move")
        session = {"Mcp-Session-Id": hub.post("/mcp", INITIALIZE).headers["Mcp-Session-Id"]}
        with answering(hub, robot) as (answers,):
            answers.replies["/calls"] = (201, {"call_id": "c1"})
            assert [each["connected"] for each in hub.get("/robots").json()] == [True, False]
            newest = {**session, "MCP-Protocol-Version": "2025-11-25"}
            with hub.post("/mcp", call(7, "r1_move"), headers=newest, stream=True) as asked:
                assert next(asked.iter_lines()).startswith(b'id: ["c1"')
    answers.join()
    with served_hub(database) as hub, answering(hub, robot) as (answers,):
        hub.post("/mcp", cancelled(7).model_dump(exclude_none=True), headers=session)
        assert answers.took.acquire(timeout=TIMEOUT_S), "it is carried out, be it after the client has its answer"
        assert [command["path"] for command in answers.taken] == ["/calls/c1/cancel"]
    answers.join()


@pytest.mark.feature("H2")
def test_an_id_that_can_be_no_calls_is_looked_for_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: Any) -> Any:
        raise AssertionError("it is looked for")

    for of in ("find", "begun_at"):
        monkeypatch.setattr(CallTable, of, look)
    with served_hub(f"sqlite:///{tmp_path}/hub.sqlite") as hub:
        problem(hub.get("/calls/%25"), 404, "unknown-call")
        problem(hub.post("/calls/%25/cancel"), 404, "unknown-call")


def _answered(storage: HubStorage, robot: str, key: str, path: str, body: dict[str, Any]) -> None:
    id = storage.commands.give(command(key, robot=robot, path=path))
    assert isinstance(id, int)
    storage.commands.answer(robot, Answer(protocol=1, id=id, outcome="answered", status=201, body=body))
