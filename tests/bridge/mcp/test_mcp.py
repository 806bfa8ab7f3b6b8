"""``/mcp`` with the official client over real HTTP, and by hand where a client would not do such a thing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest
import requests

from dimos_streams.bridge.mcp import server
from dimos_streams.bridge.mcp.results import skill_tool
from dimos_streams.module import Module, RunContext, Services
from dimos_streams.operator.known_names import OPERATOR
from dimos_streams.skill import skill, skills_of
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.look_out_for import LookOut
from dimos_streams.skills.observe import Observe
from dimos_streams.skills.patrol import Patrol
from dimos_streams.tool_stream.gateway import OfferedSkill
from tests.bridge.monitor.toy_agent import ToyAgent
from tests.bridge.scene import Scene, Worker, closed, scene
from tests.bridge.serving import served
from tests.helpers import until

if TYPE_CHECKING:  # the official package takes a tenth of the time in which all tests are found
    from mcp import Client
    from mcp_types import CallToolResult


@contextlib.asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[tuple[Scene, Client]]:
    from mcp import Client

    async with scene(port=0) as made, Client(f"{made.bridge.url}/mcp", **options) as client:
        yield made, client


def text(result: CallToolResult) -> str:
    from mcp_types import TextContent

    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def structured(result: CallToolResult) -> dict[str, Any]:
    assert isinstance(result.structured_content, dict)
    return result.structured_content


@pytest.mark.slow
@pytest.mark.feature("F8")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_lists_calls_follows_and_cancels(mode: Any) -> None:
    async def scenario() -> None:
        async with connected(mode=mode) as (made, client):
            assert client.server_info is not None
            assert client.server_info.name == "dimos-streams"
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"follow", "count", "skill_updates", "get_call", "list_calls", "cancel_call"} <= tools.keys()
            assert tools["follow"].input_schema["required"] == ["description"]

            done = await client.call_tool("at_once", {"value": 3})
            assert (text(done), done.is_error) == ("3", False)
            assert (structured(done)["outcome"], structured(done)["result"]) == ("completed", 3)

            worker = made.processes[1].modules["worker"]
            assert isinstance(worker, Worker)
            worker.goes_on.clear()
            answered = await client.call_tool("follow", {"description": "ann", "steps": 3})
            call_id = structured(answered)["call_id"]
            assert text(answered).startswith("following ann\n\nThe call goes on as")
            assert structured(answered)["state"] == "open"
            listed = structured(await client.call_tool("list_calls", {"state": "open"}))["calls"]
            assert [call["call_id"] for call in listed] == [call_id]
            worker.goes_on.set()
            cursor = structured(answered)["cursor"]
            lines: list[str] = []
            while "is over" not in str(lines[-1:]):
                update = await client.call_tool("skill_updates", {"call_id": call_id, "after": cursor, "wait_s": 5})
                cursor, lines = structured(update)["cursor"], [*lines, *text(update).splitlines()]
            reports = [line.partition(") ")[2] for line in lines if line.startswith("follow (call")]
            assert reports == ["says: saw ann", "completed: followed ann"]

            patrol = structured(await client.call_tool("follow", {"description": "bob"}))["call_id"]
            ended = await client.call_tool("cancel_call", {"call_id": patrol, "reason": "enough"})
            assert not ended.is_error
            assert text(ended) == f"call {patrol} is over: cancelled: enough"
            assert (await closed(made.broker, patrol)).text == "enough"

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.feature("F8")
def test_a_token_changes_nothing_but_progress_until_the_answer_and_giving_up_cancels() -> None:
    async def scenario() -> None:
        async with connected() as (made, client):
            reports: list[tuple[float, str | None]] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                reports.append((progress, message))

            token = await client.call_tool("follow", {"description": "ann"}, progress_callback=hear)
            await client.call_tool("cancel_call", {"call_id": structured(token)["call_id"]})
            plain = await client.call_tool("follow", {"description": "ann"})
            for answered in (token, plain):
                assert text(answered).startswith("following ann\n\nThe call goes on as")
                assert structured(answered)["state"] == "open"
            await client.call_tool("cancel_call", {"call_id": structured(plain)["call_id"]})
            assert reports == []

            reports.clear()
            following = asyncio.create_task(client.call_tool("search", progress_callback=hear))
            await until(lambda: len(reports) > 2)
            assert reports[:3] == [(1, "room 0"), (2, "room 1"), (3, "room 2")]
            (call,) = made.broker.ledger.calls.open
            following.cancel()
            await asyncio.wait([following])
            view = await closed(made.broker, call.call_id)
            assert view.outcome == "cancelled"

            waiting = asyncio.create_task(client.call_tool("patrol"))
            await until(lambda: made.broker.ledger.calls.open)
            (call,) = made.broker.ledger.calls.open
            waiting.cancel()
            await asyncio.wait([waiting])
            assert (await closed(made.broker, call.call_id)).outcome == "cancelled"

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.feature("E9", "F8")
def test_errors_and_what_is_not_for_everyone() -> None:
    from mcp import MCPError

    async def scenario() -> None:
        async with connected() as (made, client):
            await made.add(ToyAgent(name="agent"))
            await made.offered("say")
            assert "say" not in {tool.name for tool in (await client.list_tools()).tools}
            for name, words in (
                ("folow", "did you mean 'follow'"),
                ("say", "no tool is called 'say'"),
                ("x" * 10_000, "no tool is called 'xxx"),
            ):
                with pytest.raises(MCPError, match=words) as unknown:
                    await client.call_tool(name, {"text": "hello"})
                assert len(str(unknown.value)) < 400, "it comes back in part"
            wrong = await client.call_tool("follow", {"who": "ann"})
            assert wrong.is_error
            assert "description: is missing" in text(wrong)
            failed = await client.call_tool("fail")
            assert (failed.is_error, text(failed)) == (True, "failed: the floor is wet")
            assert structured(failed)["text"] == "failed: the floor is wet"
            assert "description: is missing" in structured(wrong)["text"]
            bad = await client.call_tool("skill_updates", {"wait_s": 1000})
            assert (bad.is_error, "wait_s: it must be at most 50 (given: 1000)" in text(bad)) == (True, True)
            gone = await client.call_tool("cancel_call", {"call_id": "nobody"})
            assert (gone.is_error, "nobody" in text(gone)) == (True, True)
            refused: list[str | None] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                refused.append(message)

            wrong = await client.call_tool("follow", {}, progress_callback=hear)
            assert (wrong.is_error, refused) == (True, [])
            own = await made.broker.call("say", {"text": "x"}, caller=OPERATOR)
            shown = structured(await client.call_tool("list_calls"))["calls"]
            assert [call["skill"] for call in shown] == ["fail"]
            for tool in ("get_call", "skill_updates", "cancel_call"):
                hidden = await client.call_tool(tool, {"call_id": own})
                assert (hidden.is_error, own in text(hidden)) == (True, True)
            await made.broker.cancel(own, "enough")

    asyncio.run(scenario())


@pytest.mark.feature("F8")
def test_a_client_hears_when_the_tools_change() -> None:
    async def scenario() -> None:
        heard: list[str] = []

        async def handle(message: Any) -> None:
            heard.append(type(message).__name__)

        async with connected(message_handler=handle) as (made, client):
            context = RunContext(namespace="robot2/", services=Services())
            await made.add(Worker(name="robot2/worker", context=context))
            await until(lambda: "ToolListChangedNotification" in heard)
            assert "robot2_follow" in {tool.name for tool in (await client.list_tools()).tools}

    asyncio.run(scenario())


class Waver(Module):
    """Waves."""

    @skill
    async def wave(self) -> None:
        """Wave."""


class SlowWaver(Module):
    """The same robot after an update."""

    @skill
    async def wave(self) -> None:
        """Wave slowly."""


class PreciseWaver(Module):
    """And after another one."""

    @skill
    async def wave(self, times: int = 2) -> None:
        """Wave slowly."""


@pytest.mark.slow
@pytest.mark.feature("F8")
def test_a_client_hears_when_a_tool_changes_its_description_or_its_schema() -> None:
    async def scenario() -> None:
        heard: list[str] = []

        async def handle(message: Any) -> None:
            heard.append(type(message).__name__)

        async with connected(message_handler=handle) as (made, client):

            async def shown() -> tuple[str | None, list[str]]:
                await until(lambda: "ToolListChangedNotification" in heard)
                heard.clear()
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                return tools["wave"].description, list(tools["wave"].input_schema["properties"])

            first = await made.add(Waver(name="waver"))
            assert await shown() == ("Wave.", [])
            await first.host.stop()
            second = await made.add(SlowWaver(name="waver"))
            assert await shown() == ("Wave slowly.", [])
            await second.host.stop()
            await made.add(PreciseWaver(name="waver"))
            assert await shown() == ("Wave slowly.", ["times"])

    asyncio.run(scenario())


@pytest.mark.feature("F8")
def test_only_what_its_author_vouches_for_is_read_only() -> None:
    async def scenario() -> None:
        async with connected() as (_, client):
            hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
            read_only = {name for name, hint in hints.items() if hint is not None and hint.read_only_hint}
            assert read_only == {"search", "skill_updates", "get_call", "list_calls"}
            for name in ("follow", "count", "cancel_call"):
                hint = hints[name]
                assert hint is not None
                assert (hint.read_only_hint, hint.destructive_hint) == (False, True)

    asyncio.run(scenario())
    stock = [
        spec.info()
        for module in (Drive, FollowPerson, LookOut, Observe, Patrol)
        for spec in skills_of(module).values()
    ]
    assert [info.name for info in stock if hinted(**info.model_dump(exclude={"name", "description"}))] == ["observe"]


def hinted(**stated: Any) -> bool:
    fields = {"parameters": {}, **stated}
    skill = OfferedSkill(name="x", description="", module="m", available=True, **fields)
    return bool(skill_tool(skill)["annotations"]["readOnlyHint"])


def test_each_tool_takes_an_object_whatever_its_skill_refers_to() -> None:
    odd = {"$ref": "#/$defs/List", "$defs": {"List": {"type": "array"}}}
    for parameters in ({}, odd):
        skill = OfferedSkill(name="x", description="", module="m", available=True, parameters=parameters)
        assert skill_tool(skill)["inputSchema"] == {"type": "object"}


def test_what_comes_off_the_bus_is_not_believed_against_what_else_it_says() -> None:
    assert hinted(read_only=True)
    assert not hinted(concurrent=True)
    assert not hinted(read_only=True, motion=True)
    assert not hinted(read_only=True, resources=("base",))
    assert not hinted(read_only=True, parameters={"properties": {"then": {"type": "string"}}})


INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x\n", "version": "1"}},
}


@pytest.mark.slow
def test_the_transport_by_hand() -> None:
    with served() as bridge:
        begun = bridge.post("/mcp", INITIALIZE)
        assert begun.json()["result"]["protocolVersion"] == "2025-06-18"
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        known = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        ready = bridge.post("/mcp", known, headers=session)
        assert (ready.status_code, ready.text) == (202, "")
        ping = {"jsonrpc": "2.0", "id": "a", "method": "ping"}
        assert bridge.post("/mcp", ping, headers=session).json() == {"jsonrpc": "2.0", "id": "a", "result": {}}
        unknown = bridge.post("/mcp", {**ping, "method": "dance"}, headers=session).json()
        assert unknown["error"]["code"] == -32601
        nameless = bridge.post("/mcp", {**ping, "method": "tools/call"}, headers=session).json()
        assert nameless["error"]["code"] == -32602
        nowhere = bridge.post("/mcp", {**ping, "method": "tools/list", "params": {"cursor": "b"}}, headers=session)
        assert nowhere.json()["error"]["code"] == -32602
        old = {**session, "MCP-Protocol-Version": "1999-01-01"}
        for status, body, headers in [
            (400, ping, {}),
            (400, ping, old),
            (404, ping, {"Mcp-Session-Id": "nobody"}),
            (400, [ping], session),
            (400, {"id": 1}, session),
            (400, {**ping, "params": []}, session),
        ]:
            refused = bridge.post("/mcp", body, headers=headers)
            assert (refused.status_code, "error" in refused.json()) == (status, True), refused.text
        assert (
            bridge.post("/mcp", None, headers={**session, "Content-Type": "application/json"}, data=b"{").status_code
            == 400
        )
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}}
        assert bridge.post("/mcp", cancelled, headers=session).status_code == 202
        assert requests.get(f"{bridge.url}/mcp", timeout=10).status_code == 400
        assert bridge.get("/mcp", headers={**session, "Accept": "application/json"}).status_code == 406
        assert requests.delete(f"{bridge.url}/mcp", headers=session, timeout=10).status_code == 204
        assert bridge.post("/mcp", ping, headers=session).status_code == 404
        foreign = bridge.post("/mcp", INITIALIZE, headers={"Origin": "http://evil.example"})
        assert foreign.status_code == 403


@pytest.mark.slow
@pytest.mark.feature("A3")
def test_the_streams_of_clients_that_listen_are_bounded_and_end_with_their_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "MAX_ALL_STREAMS", 3)
    with served() as bridge, contextlib.ExitStack() as stack:

        def begin() -> dict[str, str]:
            return {"Mcp-Session-Id": bridge.post("/mcp", INITIALIZE).headers["Mcp-Session-Id"]}

        def listen(session: dict[str, str]) -> requests.Response:
            return stack.enter_context(bridge.get("/mcp", headers=session, stream=True))

        one, two = begin(), begin()
        streams = [listen(one), listen(one)]
        refused = listen(one)
        assert refused.status_code == 503
        assert "this session has 2 streams open already" in refused.json()["error"]["message"]
        streams.append(listen(two))
        assert [stream.status_code for stream in streams] == [200] * 3
        assert "3 streams are open already" in listen(two).json()["error"]["message"]
        assert requests.delete(f"{bridge.url}/mcp", headers=one, timeout=10).status_code == 204
        assert [stream.content for stream in streams[:2]] == [b"", b""], "they have ended"
        assert listen(two).status_code == 200
