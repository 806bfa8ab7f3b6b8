"""Requests that ask for what there is not: they are told so, instead of getting everything, or nothing for ever."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from urllib.parse import quote

import pytest
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request

from dimos_streams.bridge.calls import ledger
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.serving.query_names import check_numbers
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.bridge.serving import served
from tests.problems import problem


@pytest.mark.parametrize(
    ("path", "named", "valid"),
    [
        ("/tool_streams?form=1", ["query.form"], "call, caller, from"),
        ("/tool_streams?from=1&after=2&FROM=3", ["query.FROM", "query.after"], "call, caller, from"),
        ("/calls?status=open", ["query.status"], "before, limit, state"),
    ],
)
def test_a_query_parameter_that_nobody_reads_is_refused(path: str, named: list[str], valid: str) -> None:
    with served() as bridge:
        refused = problem(bridge.get(path), 422, "bad-request")
        assert list(refused["errors"]) == named
        for name in named:
            assert f"{name}: there is no such parameter; valid: {valid}" in refused["detail"]


def test_a_query_parameter_is_given_once_and_a_number_where_it_is_one() -> None:
    with served() as bridge:
        refused = problem(bridge.get("/tool_streams?from=1&from=5"), 422, "bad-request")
        assert refused["errors"] == {"query.from": "it can be given once only (given: ['1', '5'])"}
        for path in ("/tool_streams?from=1_0", "/events?limit=1_0", "/calls?limit=%2B5"):
            (fault,) = problem(bridge.get(path), 422, "bad-request")["errors"].values()
            assert fault.startswith("it must be a number: digits of ASCII")
        assert bridge.get("/calls?limit=05").status_code == 200


@pytest.mark.parametrize("text", ["1_0", " 5", "%2B5", "5%20", "\u0663", "\uff15"])
def test_a_number_is_one_for_everybody(text: str) -> None:
    request = Request({"type": "http", "query_string": f"from={quote(text, safe='%')}".encode(), "headers": []})
    with pytest.raises(RequestValidationError, match="it must be a number: digits of ASCII"):
        check_numbers(request, ["from"])


def test_the_id_of_the_last_event_is_given_once() -> None:
    with served() as bridge, closing(HTTPConnection("127.0.0.1", bridge.port, timeout=10)) as connection:
        connection.putrequest("GET", "/tool_streams")
        for offset in ("5", "3"):
            connection.putheader("Last-Event-ID", offset)
        connection.endheaders()
        refused = connection.getresponse()
        assert refused.status == 422
        assert json.loads(refused.read())["errors"] == {
            "header.last-event-id": "it can be given once only (given: ['5', '3'])"
        }


def test_a_call_is_not_begun_with_a_misspelt_wait() -> None:
    with served() as bridge:
        refused = problem(bridge.post("/calls?wiat=close", {"skill": "patrol"}), 422, "bad-request")
        assert "query.wiat: there is no such parameter; valid: timeout_s, wait" in refused["detail"]
        assert bridge.get("/calls").json() == []


def test_many_unknown_parameters_are_a_short_answer() -> None:
    with served() as bridge:
        query = "&".join(f"{'k' * 150}{number}=v" for number in range(50))
        assert len(problem(bridge.get(f"/tool_streams?{query}"), 422, "bad-request")["detail"]) < 5_000


def test_what_can_be_no_call_has_no_stream() -> None:
    with served() as bridge:
        for query in ("?call=..", "?call=a/b&from=1", "?call="):
            problem(bridge.get(f"/tool_streams{query}"), 404, "unknown-call")
        call_id = bridge.call("count", label="a", to=1)["call_id"]
        assert [offset for offset, _ in bridge.stream(f"?call={call_id}&from=1").events(3)] == [1, 2, 3]


@pytest.mark.feature("A3")
def test_whoever_waits_for_a_call_that_is_begun_on_the_bus_gets_its_events() -> None:
    with served() as bridge:
        stream = bridge.stream("?call=chosen&from=1")
        arguments = json.dumps({"label": "a", "to": 1})
        call = SkillCall(call_id="chosen", module="worker", skill="count", caller="me", arguments_json=arguments)

        async def begin() -> None:
            bridge.broker.bus.publish(CALLS, encode(call))

        bridge.run(begin())
        assert [event["type"] for _, event in stream.events(3)] == ["open", "update", "close"]


@pytest.mark.feature("A4")
def test_the_events_of_a_call_are_kept_for_longer_than_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_KEPT_CLOSED", 1)
    with served() as bridge:
        journal = bridge.scene.bridge.journal
        journal.limits = replace(journal.limits, closed_calls=1)
        first, *_ = [bridge.call("count", label="a", to=1)["call_id"] for _ in range(3)]

        async def trim() -> None:
            journal.trim()

        bridge.run(trim())
        problem(bridge.get(f"/calls/{first}"), 404, "unknown-call")
        assert [offset for offset, _ in bridge.stream(f"?call={first}&from=1").events(3)] == [1, 2, 3]


def test_who_has_read_of_a_call_gets_a_gap_when_it_is_forgotten() -> None:
    with served() as bridge:
        bridge.call("count", label="a", to=1)
        (_, gap) = bridge.stream("?call=zzzz", "Last-Event-ID: 99\r\n").event()
        assert (gap["type"], gap["call_id"]) == ("gap", "")
        assert gap["seq"] == 0, "it takes no event's place"
