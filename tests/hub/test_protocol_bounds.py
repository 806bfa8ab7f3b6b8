"""What a hub refuses of what robots send, at the borders of what its protocol allows."""

from __future__ import annotations

import functools
import gc
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.json.writing import json_text
from dimos_streams.fleet.batches import Batch, ShippedEvent, encoded_event
from dimos_streams.fleet.protocol import MAX_ANSWER_BYTES, MAX_BATCH_BYTES, MAX_REPORT_BYTES
from dimos_streams.hub.batches import robot_batch
from dimos_streams.hub.http import robot_side
from dimos_streams.serving.problems import ProblemError
from dimos_streams.tool_stream.event import MAX_SEQ, MAX_UTIME, MIN_UTIME, ToolEvent
from dimos_streams.tool_stream.protocol.bounds import MAX_DATA_DEPTH, MAX_EVENT
from tests.hub.serving import Robot, ServedHub, added, event, served_hub
from tests.problems import problem

DEEP: list[Any] = functools.reduce(lambda within, _: [within], range(MAX_DATA_DEPTH), [])


@pytest.fixture
def hub_and_robot(tmp_path: Path) -> Iterator[tuple[ServedHub, Robot]]:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        yield hub, robot


def entry(**changed: Any) -> bytes:
    """An event at offset 1 that differs from a sound one."""
    return encoded_event(1, json.dumps({**json.loads(event(1)), **changed}).encode())


def lost(first: Any, last: Any) -> dict[str, Any]:
    return {"from_seq": first, "to_seq": last}


@pytest.mark.feature("H2")
def test_an_entry_with_values_that_no_event_has_is_refused_and_nothing_of_it_is_served(
    hub_and_robot: tuple[ServedHub, Robot],
) -> None:
    hub, robot = hub_and_robot
    odd: list[tuple[dict[str, Any], str]] = [
        *(({"seq": seq}, f"seq is {seq}; valid: 1 to {MAX_SEQ}") for seq in (0, -3, 2**63, True)),
        *(
            ({"utime": utime}, f"utime is {utime}; valid: {MIN_UTIME} to {MAX_UTIME}")
            for utime in (-(2**70), 2**70, False)
        ),
        ({"type": "gap"}, "is none of a call; valid: from_seq and to_seq in its data"),
        ({"type": "gap", "seq": 0, "data": {"from_offset": 1, "to_offset": 2}}, "a gap of seq 0"),
        ({"type": "gap", "call_id": "", "seq": 2, "data": lost(1, 2)}, "call_id '' can be no call's"),
        *(
            ({what: "go\nok"}, r"a name in it is 'go\nok'; valid: at most 200 printable")
            for what in ("module", "skill", "caller")
        ),
        ({"type": "gap", "seq": 2, "data": lost(1, 3)}, "a gap of seq 2"),
        ({"type": "gap", "seq": 2, "data": lost(3, 2)}, "a gap of seq 2"),
        ({"type": "gap", "seq": 1, "data": lost(True, 1)}, "a gap of seq 1"),
    ]
    for changed, why in odd:
        refused = problem(robot.ship(hub, entry(**changed)), 422, "fleet-entry")
        assert refused["offset"] == 1
        assert why in refused["detail"], changed
    assert robot.position(hub).json()["acknowledged"] == 0
    assert hub.get("/events").json() == []


@pytest.mark.feature("H2")
def test_a_gap_of_a_call_as_its_bridge_has_journalled_it_is_an_event_like_others(
    hub_and_robot: tuple[ServedHub, Robot],
) -> None:
    hub, robot = hub_and_robot
    nobody = {"module": "", "skill": "", "caller": ""}
    gone = json.loads(event(2)) | {"type": "gap", "seq": 3, "data": lost(2, 3), **nobody}
    shipped = [event(1, type="open"), json.dumps(gone).encode(), event(MAX_SEQ, type="close", outcome="lost")]
    answer = robot.ship(hub, *(encoded_event(offset, each) for offset, each in enumerate(shipped, 1)))
    assert answer.json()["acknowledged"] == 3
    assert [json.loads(each) | {"robot": "r1"} for each in shipped] == [served for _, served in hub.events(3)]


@pytest.mark.feature("H2")
@pytest.mark.parametrize(
    "changed",
    [
        *(
            {"caller": "cli "},
            {"module": "a b"},
            {"module": "dr\u0456ve"},
            {"skill": "\u0442urn"},
            {"caller": "\ud800"},
        ),
        *({"text": "x" * MAX_EVENT}, {"data": {"a": "é" * (MAX_EVENT // 2)}}, {"data": {"a": DEEP}}),
    ],
    ids=lambda changed: ascii(changed)[:30],
)
def test_an_event_that_no_bus_has_is_left_out_and_holds_nothing_up(changed: dict[str, Any]) -> None:
    fields = parse_json(json.dumps({**json.loads(event(2)), **changed}))
    sound = [ShippedEvent(offset=n, event=json.loads(event(n))) for n in (1, 3)]
    odd = ShippedEvent(offset=2, event=fields)
    batch = Batch(version="", sent_utime=0, journal="journal-1", entries=[sound[0], odd, sound[1]])
    first, left_out, last = robot_batch("r1", batch).entries
    assert [first.body, last.body] == [json_text(each.event) for each in sound]
    assert (left_out.first, left_out.last, left_out.type) == (2, 2, "gap")
    served = ToolEvent.from_dict(json.loads(left_out.body))
    assert (served.module, served.skill, served.caller, served.call_id) == ("", "", "", "")
    why = "a name in it is " if changed.keys() & {"module", "skill", "caller"} else "its "
    assert f"an event is left out: {why}" in served.text
    assert served.text.isascii()


@pytest.mark.feature("H2")
def test_a_message_with_two_members_of_one_name_is_refused() -> None:
    with pytest.raises(ProblemError, match="several members of the name 'journal'"):
        robot_side._message(Batch, b'{"journal": "a", "journal": "b"}', "batch", 99)


@pytest.mark.feature("H2")
def test_parts_of_a_robot_are_shown_by_names_only(hub_and_robot: tuple[ServedHub, Robot]) -> None:
    hub, robot = hub_and_robot
    assert robot.report(hub, robots=["left", "left ", "l\u0435ft", ""]).status_code == 200
    assert [each["robots"] for each in hub.get("/robots").json()] == [["left"]]


@pytest.mark.feature("H2")
@pytest.mark.parametrize("value", [True, "1", 1.0, -1, 2**70])
def test_integers_of_messages_are_integers_of_json_within_bounds(
    hub_and_robot: tuple[ServedHub, Robot], value: Any
) -> None:
    hub, robot = hub_and_robot
    for field in ("sent_utime", "last_offset", "open_calls", "modules", "skills_left_out"):
        assert field in problem(robot.report(hub, **{field: value}), 422, "bad-request")["detail"]
    assert "sent_utime" in problem(_batch(robot, hub, sent_utime=value), 422, "bad-request")["detail"]
    assert "id" in problem(robot.answer(hub, value), 422, "bad-request")["detail"]
    assert "status" in problem(robot.answer(hub, 1, value), 422, "bad-request")["detail"]
    assert robot.position(hub).json()["acknowledged"] == 0


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_no_text_that_a_database_can_not_have_is_taken_for_a_database_that_is_gone(database_url: str) -> None:
    robot = Robot("r1", added(database_url, "r1")["r1"])
    with served_hub(database_url) as hub:
        shipped = json.dumps({**json.loads(event(1)), "caller": "my-client", "text": "b\0"}).encode()
        assert robot.ship(hub, encoded_event(1, shipped)).status_code == 200
        ((offset, served),) = hub.events(1)
        assert (served["caller"], served["text"]) == ("my-client", "b\0")
        assert hub.get(f"/events?caller={served['caller']}").json() == [{"offset": offset, "event": served}]
        assert hub.get("/events?caller=a%00").json() == []
        for refused in (robot.report(hub, version="1\0"), _batch(robot, hub, version="1\0")):
            assert "version" in problem(refused, 422, "bad-request")["detail"]
        problem(hub.get("/calls/a%00"), 404, "unknown-call")
        problem(hub.post("/calls/a%00/cancel"), 404, "unknown-call")


@pytest.mark.feature("H2")
@pytest.mark.parametrize("protocol", [True, "1", "2", 1.0, None])
def test_a_version_of_the_protocol_that_is_no_integer_is_not_taken_for_one(
    hub_and_robot: tuple[ServedHub, Robot], protocol: Any
) -> None:
    hub, robot = hub_and_robot
    for refused in (_batch(robot, hub, protocol=protocol), robot.report(hub, protocol=protocol)):
        assert "protocol" in problem(refused, 422, "bad-request")["detail"]


def _batch(robot: Robot, hub: ServedHub, **changed: Any) -> Any:
    body = {"protocol": 1, "version": "test", "sent_utime": 1, "journal": robot.journal, **changed}
    entries = [{"offset": 1, "event": json.loads(event(1))}]
    return robot.send(hub, "batches", json.dumps({**body, "entries": entries}).encode())


@pytest.mark.feature("H2")
@pytest.mark.parametrize(
    ("what", "most"), [("batches", MAX_BATCH_BYTES), ("reports", MAX_REPORT_BYTES), ("answers", MAX_ANSWER_BYTES)]
)
def test_a_message_has_no_more_bytes_than_its_kind_may_have(
    hub_and_robot: tuple[ServedHub, Robot], what: str, most: int
) -> None:
    hub, robot = hub_and_robot
    refused = problem(robot.send(hub, what, b" " * (most + 1)), 413, "too-large")
    assert f"has {most + 1} bytes, one may have {most}: send less at once" in refused["detail"]
    answer = json.dumps({"id": 1, "outcome": "answered", "status": 200, "body": ""}).encode()
    if what == "answers":
        assert robot.send(hub, what, answer.ljust(most)).status_code == 204
    else:
        problem(robot.send(hub, what, b"{}".ljust(most)), 422, "bad-request")


@pytest.mark.feature("H2")
def test_a_robot_of_another_protocol_is_named_with_its_version_where_it_says_that(
    hub_and_robot: tuple[ServedHub, Robot],
) -> None:
    hub, robot = hub_and_robot
    by_answer = problem(robot.answer(hub, 1, protocol=2), 409, "fleet-version")
    assert ": the robot speaks version 2 of the protocol, this hub" in by_answer["detail"]
    by_report = problem(robot.report(hub, protocol=2), 409, "fleet-version")
    assert ": the robot (version 'test') speaks version 2 of the protocol" in by_report["detail"]


@pytest.mark.feature("H2")
def test_of_tokens_that_are_nobodys_the_hub_keeps_nothing(hub_and_robot: tuple[ServedHub, Robot]) -> None:
    """A stranger has as many as they like, each of 30 kB."""
    hub, robot = hub_and_robot
    with requests.Session() as session:

        def ask(number: int) -> None:
            headers = {"Authorization": f"Bearer {number}{'x' * 30_000}"}
            problem(session.get(robot.path(hub, "position"), headers=headers, timeout=10), 403, "foreign-robot")

        for number in range(10):
            ask(number)
        tracemalloc.start()
        try:
            for number in range(10, 60):
                ask(number)
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 500_000
        finally:
            tracemalloc.stop()
    assert robot.position(hub).status_code == 200


@pytest.mark.feature("H2")
@pytest.mark.parametrize("levels", [101, 200])
def test_a_request_that_is_too_deep_for_a_command_is_refused_at_once(
    hub_and_robot: tuple[ServedHub, Robot], levels: int
) -> None:
    hub, robot = hub_and_robot
    robot.report(hub, "move")
    nested: list[Any] = []
    for _ in range(levels - 3):
        nested = [nested]
    for path in ("/calls", "/robots/r1/calls"):
        refused = hub.post(path, {"skill": "move", "arguments": {"x": nested}})
        assert "the body is nested more than 100 deep" in problem(refused, 422, "bad-request")["detail"]
