"""Clients that keep no session, as the ``McpClient`` of dimos: what it sends, and how it reads the answers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import uuid
from typing import Any

import pytest
import requests

from dimos_streams.bridge.mcp.messages import Incoming
from dimos_streams.bridge.mcp.sessions import MAX_REQUESTS, SessionsBusyError
from dimos_streams.journal.broadcast_reader import BroadcastReader
from tests.bridge.mcp.servers import mcp_server
from tests.bridge.mcp.test_mcp import INITIALIZE
from tests.bridge.scene import scene
from tests.bridge.serving import Served, served
from tests.dimos_skills.stand_in import CAPTURED_CLIENT
from tests.helpers import until

LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


class BareClient:
    """Posts JSON without a session and without a word about what it accepts, and reads each answer as JSON."""

    def __init__(self, bridge: Served) -> None:
        self._url = f"{bridge.url}/mcp"
        self._http = requests.Session()
        self._ids = itertools.count(1)

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self._ids), "method": method}
        if params is not None:
            body["params"] = params
        response = self._http.post(self._url, json=body, timeout=20)
        response.raise_for_status()
        answer = response.json()
        assert answer["id"] == body["id"]
        if "error" in answer:
            raise RuntimeError(f"{answer['error']['code']}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> str:
        meta = {"progressToken": str(uuid.uuid4())}
        result = self.request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})
        return "\n".join(item["text"] for item in result["content"] if item["type"] == "text")


@pytest.mark.slow
@pytest.mark.feature("G3", "F8")
def test_it_lists_calls_reads_on_and_cancels() -> None:
    with served() as bridge:
        client = BareClient(bridge)
        assert client.request("initialize")["serverInfo"]["name"] == "dimos-streams"
        tools = {tool["name"]: tool for tool in client.request("tools/list")["tools"]}
        assert {"follow", "count", "skill_updates", "cancel_call"} <= tools.keys()
        assert tools["follow"]["inputSchema"]["type"] == "object"
        assert client.call("at_once", value=3) == "3"
        assert client.call("fail") == "failed: the floor is wet"
        assert "value: is missing" in client.call("at_once")
        with pytest.raises(RuntimeError, match="-32602: no tool is called 'folow'; did you mean 'follow'"):
            client.call("folow")

        answer = client.call("follow", description="ann")
        assert answer.startswith("following ann\n\nThe call goes on as ")
        (call,) = bridge.get("/calls?state=open").json()
        assert call["caller"] == "mcp/without-session"
        assert call["call_id"] in client.call("list_calls", mine=True, state="open")
        ended = client.call("cancel_call", call_id=call["call_id"], reason="enough")
        assert ended == f"call {call['call_id']} is over: cancelled: enough"
        assert "cancelled: enough" in client.call("skill_updates", call_id=call["call_id"], after=0, wait_s=0)


@pytest.mark.feature("G3")
def test_what_dimos_client_has_sent_is_answered_as_json() -> None:
    """Requests of a real one, with their headers."""
    with served() as bridge:
        for headers, body in CAPTURED_CLIENT:
            answer = requests.post(f"{bridge.url}/mcp", headers=headers, data=body, timeout=20)
            assert answer.headers["Content-Type"] == "application/json"
            assert "Mcp-Session-Id" not in answer.headers
            assert answer.json()["result"], body


@pytest.mark.virtual_time
async def test_requests_of_equal_ids_are_each_other_no_matter_and_there_are_bounds() -> None:
    async with scene() as made:
        server = mcp_server(made)
        asked = {"name": "count", "arguments": {"label": "a", "to": 2}}
        call = Incoming.model_validate({**LISTING, "method": "tools/call", "params": asked})
        answers = await asyncio.gather(server.answer_alone(call), server.answer_alone(call))
        assert len({answer["result"]["structuredContent"]["call_id"] for answer in answers}) == 2
        with contextlib.ExitStack() as stack:
            for _ in range(MAX_REQUESTS):
                stack.enter_context(server.sessions.passing())
            with pytest.raises(SessionsBusyError, match="256 requests without a session wait already; begin one"):
                await server.answer_alone(call)
        assert await server.answer_alone(Incoming.model_validate(LISTING))
        assert len(server.sessions) == 0


@pytest.mark.virtual_time
async def test_of_a_request_that_is_given_up_no_timer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    nudged: list[BroadcastReader] = []
    monkeypatch.setattr(BroadcastReader, "nudge", lambda reader: nudged.append(reader))
    async with scene() as made:
        server = mcp_server(made)
        asked = {**LISTING, "method": "tools/call", "params": {"name": "patrol"}}
        request = asyncio.create_task(server.answer_alone(Incoming.model_validate(asked)))
        await until(lambda: made.broker.ledger.calls.open)
        await asyncio.sleep(1.0)
        request.cancel()
        await asyncio.wait([request])
        await asyncio.sleep(15.0)
        assert nudged == []


def test_json_for_those_who_take_no_streams_and_a_session_for_those_who_name_a_version() -> None:
    with served() as bridge:
        session = {"Mcp-Session-Id": bridge.post("/mcp", INITIALIZE).headers["Mcp-Session-Id"]}
        asked = {"name": "at_once", "arguments": {"value": 1}, "_meta": {"progressToken": 1}}
        call = {**LISTING, "method": "tools/call", "params": asked}
        kinds = {
            "application/json": "application/json",
            "application/json, text/event-stream": "text/event-stream; charset=utf-8",
            "*/*": "text/event-stream; charset=utf-8",
        }
        for accept, kind in kinds.items():
            answer = bridge.post("/mcp", call, headers={**session, "Accept": accept})
            assert (answer.status_code, answer.headers["Content-Type"]) == (200, kind)
            if kind != "application/json":  # no proxy is to keep progress back
                assert answer.headers["X-Accel-Buffering"] == "no"
                assert answer.headers["Cache-Control"] == "no-store, no-transform"
                assert answer.headers["Content-Encoding"] == "identity"
        lost = bridge.post("/mcp", LISTING, headers={"MCP-Protocol-Version": "2025-11-25"})
        assert lost.status_code == 400
        assert "Mcp-Session-Id is missing" in lost.json()["error"]["message"]
