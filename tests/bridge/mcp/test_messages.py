"""Messages that are none, or that do not say what they must: each is refused in words, and begins nothing."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from dimos_streams.bridge.mcp.messages import MAX_ID, Incoming
from dimos_streams.bridge.mcp.tools import OWN_TOOLS
from dimos_streams.operator.known_names import MCP_TOOLS
from tests.bridge.mcp.test_mcp import INITIALIZE
from tests.bridge.serving import Served, served


def hello(bridge: Served) -> dict[str, str]:
    """The headers of a new session."""
    return {"Mcp-Session-Id": bridge.post("/mcp", INITIALIZE).headers["mcp-session-id"]}


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["patrol", "list_calls"])
def test_arguments_that_are_no_object_begin_nothing(tool: str) -> None:
    with served() as bridge:
        session = hello(bridge)
        for arguments in ([], 0, "", False, [1], "x", 1):
            for meta in ({}, {"_meta": {"progressToken": 1}}):
                params = {"name": tool, "arguments": arguments, **meta}
                asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                assert '"code":-32602' in bridge.post("/mcp", asked, headers=session).text
        assert bridge.get("/calls").json() == []
        none = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fail", "arguments": None}}
        answer = bridge.post("/mcp", none, headers=session).json()["result"]
        assert answer["content"][0]["text"] == "failed: the floor is wet", "null is what some clients say for none"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, "the id of a request is a whole number or a text"),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, "the id of a request is a whole number or a text"),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, "the id of a request is a whole number or a text"),
        ({"jsonrpc": "2.0", "id": 1}, "the method is missing"),
        ({"jsonrpc": "2.0"}, "the method is missing"),
        ({"jsonrpc": "2.0", "method": 7}, "method: it must be a text"),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, "jsonrpc: it must be '2.0'"),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], "a message is one JSON object"),
        ([], "have no batches"),
        ("ping", "a message is one JSON object"),
    ],
)
def test_what_is_no_message_is_refused_in_words(body: Any, why: str) -> None:
    with served() as bridge:
        refused = bridge.post("/mcp", body, headers=hello(bridge))
        problem = refused.json()
        assert (refused.status_code, problem["id"], problem["error"]["code"]) == (400, None, -32600)
        assert why in problem["error"]["message"]
        assert "Incoming" not in refused.text


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"protocolVersion": None, "capabilities": None, "clientInfo": None}, []),
        ({"capabilities": []}, ["capabilities"]),
        ({"clientInfo": "x"}, ["clientInfo"]),
        ({"clientInfo": {}}, ["clientInfo.name"]),
        ({"protocolVersion": 1}, ["protocolVersion"]),
        (None, ["protocolVersion: it is missing", "capabilities: it is missing", "clientInfo: it is missing"]),
    ],
)
def test_a_session_begins_only_with_what_a_client_must_say(change: dict[str, Any] | None, named: list[str]) -> None:
    with served() as bridge:
        params = {} if change is None else {**INITIALIZE["params"], **change}
        refused = bridge.post("/mcp", {**INITIALIZE, "params": params})
        problem = refused.json()["error"]
        assert (problem["code"], "mcp-session-id" in refused.headers) == (-32602, False)
        for name in named or params:
            assert name in problem["message"]
        assert "ClientInfo" not in problem["message"]


def test_a_version_that_wants_batches_is_not_agreed_on() -> None:
    with served() as bridge:
        params = {**INITIALIZE["params"], "protocolVersion": "2025-03-26"}
        begun = bridge.post("/mcp", {**INITIALIZE, "params": params})
        assert begun.json()["result"]["protocolVersion"] == "2025-11-25"
        headers = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-03-26"}
        refused = bridge.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
        assert "(valid: 2025-11-25, 2025-06-18)" in refused.json()["error"]["message"]


def test_the_names_of_the_bridges_own_tools_are_known_to_those_who_check_blueprints() -> None:
    assert OWN_TOOLS.keys() == MCP_TOOLS


@pytest.mark.parametrize(
    ("token", "expected"), [("a", "a"), ("", ""), (0, 0), (True, None), (1.5, None), (None, None), ([1], None)]
)
def test_progress_is_reported_by_a_text_or_a_whole_number(token: object, expected: str | int | None) -> None:
    asked = Incoming(jsonrpc="2.0", id=1, method="tools/call", params={"_meta": {"progressToken": token}})
    assert asked.progress_token is expected


def test_the_schema_has_the_ids_that_are_taken() -> None:
    described = Draft202012Validator(Incoming.model_json_schema())
    for id in (1, "a", 2**63 - 1, "x" * (MAX_ID + 1), None, 1.5, 2**63, -(2**63) - 1):
        message: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": "ping"}
        assert described.is_valid(message) == (id in (1, "a", 2**63 - 1)) == _is_taken(message)
    assert described.is_valid({"jsonrpc": "2.0", "method": "ping"}), "a notification"


def _is_taken(message: dict[str, object]) -> bool:
    try:
        Incoming.model_validate(message)
    except ValidationError:
        return False
    return True
