"""Sessions under clients that come, leave and never say goodbye."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.types import Message

from dimos_streams import clock
from dimos_streams.bridge.mcp import sessions as module
from dimos_streams.bridge.mcp.awaited import Awaited
from dimos_streams.bridge.mcp.calls import BrokerCalls
from dimos_streams.bridge.mcp.messages import Incoming, RpcError
from dimos_streams.bridge.mcp.routes import NOTICE_S, mount_mcp
from dimos_streams.bridge.mcp.server import McpServer
from dimos_streams.bridge.mcp.sessions import (
    EARLY_S,
    MAX_REQUESTS,
    MAX_SESSIONS,
    Session,
    Sessions,
    SessionsBusyError,
)
from dimos_streams.bridge.mcp.tools import AGAIN_S
from dimos_streams.common.names import is_name
from dimos_streams.operator.messages.stop import CancelReport
from dimos_streams.serving.server.request_guard import MAX_DRAINED
from tests.bridge.mcp.servers import begun_again, with_session
from tests.bridge.mcp.test_mcp import INITIALIZE
from tests.bridge.scene import closed, scene
from tests.bridge.serving import Served, served
from tests.helpers import wait_for


def cancelled(id: int | str) -> Incoming:
    """The notification that a client has given up a request."""
    return Incoming.model_validate(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
    )


@pytest.mark.parametrize(
    ("client", "caller"),
    [
        ("claude", "claude"),
        ("", "client"),
        ("Claude Desktop (1.2)\n", "Claude-Desktop-1.2-[0-9a-f]{6}"),
        ("\uff41gent\u202e", "gent-[0-9a-f]{6}"),
        ("\u4eba", "[0-9a-f]{6}"),
        ("x" * 1000, "x{93}-[0-9a-f]{6}"),
    ],
)
@pytest.mark.feature("F6")
def test_any_text_by_which_a_client_calls_itself_makes_a_name(client: str, caller: str) -> None:
    made = Sessions().open(client).caller
    assert re.fullmatch(f"mcp/{caller}", made)
    assert is_name(made)


def test_an_idle_session_gives_way_and_one_in_use_never() -> None:
    sessions = Sessions()
    waits, listens = sessions.open("x"), sessions.open("x")
    idle = sessions.open("y" * 1000)
    with waits.request(1), listens.stream():
        for _ in range(2 * MAX_SESSIONS):
            sessions.open("z")
        assert len(sessions) == MAX_SESSIONS
        assert sessions.get(waits.id) is waits
        assert sessions.get(listens.id) is listens
        assert idle not in sessions
    for _ in range(MAX_SESSIONS):
        sessions.open("z")
    assert waits not in sessions


@pytest.mark.feature("F8")
@pytest.mark.virtual_time
async def test_a_client_goes_on_with_its_session_at_a_bridge_that_was_started_again() -> None:
    async with scene() as made:
        begun, session = await with_session(made)
        request = Incoming.model_validate(call(7, "at_once", value=1))
        answer = await begun.answer(session, request)
        again, same = begun_again(made, session)
        assert same.caller == session.caller
        assert same in again.sessions
        assert await again.answer(same, request) == answer, "no second call"
        assert len(await made.broker.calls()) == 1
        other = await again.answer(same, Incoming.model_validate(call(8, "at_once", value=1)))
        assert other is not None
        assert len(await made.broker.calls()) == 2


@pytest.mark.feature("F8")
@pytest.mark.virtual_time
async def test_a_client_that_counts_anew_in_a_session_of_before_is_told_that_nothing_has_begun() -> None:
    async with scene() as made:
        begun, session = await with_session(made)
        request = Incoming.model_validate(call(7, "at_once", value=1))
        answer = await begun.answer(session, request)
        again, same = begun_again(made, session)
        asked_at = clock.monotonic()
        assert await again.answer(same, request) == answer
        assert clock.monotonic() - asked_at < 1.0, "it has ended"
        (known,) = await made.broker.calls()
        why = f"request 7 was made before in this session, and has begun call '{known.call_id}', which get_call shows"
        await asyncio.sleep(AGAIN_S + 1.0)
        for value in (1, 2):
            _, later = begun_again(made, session)
            refused = await again.answer(later, Incoming.model_validate(call(7, "at_once", value=value)))
            assert refused is not None
            assert refused["error"]["message"].startswith(why)
        assert len(await made.broker.calls()) == 1


def test_only_what_is_the_id_of_a_session_that_was_not_ended_is_taken_up() -> None:
    sessions = Sessions()
    ended = sessions.open("x")
    sessions.end(ended.id)
    digits = ended.id.rpartition(".")[2]
    for id in (ended.id, "", "x", digits, f".{digits}", f"x.{digits[1:]}", f"x y.{digits}", f"{'x' * 101}.{digits}"):
        assert sessions.get(id) is None, id
    assert sessions.get(f"robots/x.y.{digits}") is not None
    with contextlib.ExitStack() as stack:
        for number in range(MAX_SESSIONS):
            session = sessions.get(f"x.{number:032x}")
            assert session is not None
            stack.enter_context(session.stream())
        with pytest.raises(SessionsBusyError):
            sessions.get(f"y.{digits}")


@pytest.mark.feature("F8")
@pytest.mark.virtual_time
async def test_a_session_that_waits_for_updates_is_in_use() -> None:
    async with scene() as made:
        server, session = await with_session(made)
        reading = Incoming.model_validate(call(1, "skill_updates", after=0, wait_s=30))
        waiting = asyncio.create_task(server.answer(session, reading))
        await asyncio.sleep(0.1)
        for _ in range(2 * MAX_SESSIONS):
            server.sessions.open("another")
        assert session in server.sessions
        await made.broker.call("at_once", {"value": 1}, caller=session.caller)
        answer = await waiting
        assert answer is not None
        assert answer["result"]["structuredContent"]["events"]
        assert not session.busy


@pytest.mark.feature("F8")
@pytest.mark.virtual_time
async def test_reading_that_is_given_up_ends_at_once_and_is_not_answered() -> None:
    async with scene() as made:
        server, session = await with_session(made)
        reading = Incoming.model_validate(call(1, "skill_updates", after=0, wait_s=30))
        given_up = asyncio.create_task(server.answer(session, reading))
        await asyncio.sleep(0.1)
        begun = clock.monotonic()
        await server.notice(session, cancelled(1))
        assert await given_up is None
        assert clock.monotonic() == begun
        assert not session.busy


@pytest.mark.feature("F8")
@pytest.mark.virtual_time
async def test_an_end_of_calls_is_carried_out_though_the_client_gives_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as made:
        calls = BrokerCalls(made.broker)
        cancel_all, asked, goes_on = calls.cancel_all, asyncio.Event(), asyncio.Event()

        async def held_up(*args: Any) -> CancelReport:
            asked.set()
            await goes_on.wait()
            return await cancel_all(*args)

        monkeypatch.setattr(calls, "cancel_all", held_up)
        server, session = await with_session(made, calls)
        patrol = await made.broker.call("patrol", {}, caller=session.caller)
        end_all = Incoming.model_validate(call(1, "cancel_call", call_id="all"))
        ending = asyncio.create_task(server.answer(session, end_all))
        await asked.wait()
        await server.notice(session, cancelled(1))
        goes_on.set()
        assert await ending is None
        assert (await made.broker.view(patrol)).outcome == "cancelled"


@pytest.mark.virtual_time
async def test_a_client_that_waits_for_a_silent_call_hears_pauses_and_then_that_it_goes_on() -> None:
    async with scene() as made:
        server, session = await with_session(made)
        begun = clock.monotonic()
        heard = []
        async for message in server.follow(session, Incoming.model_validate(call(1, "patrol"))):
            assert not isinstance(message, Awaited), "only those that resume are told where"
            heard.append((round(clock.monotonic() - begun), message and message["result"]["isError"]))
        assert heard == [(10, None), (20, None), (20, False)]


@pytest.mark.feature("F8")
@pytest.mark.virtual_time
async def test_a_cancel_that_is_long_in_being_carried_out_holds_up_nothing_else_of_its_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene() as made:
        calls, is_found = BrokerCalls(made.broker), asyncio.Event()

        async def found_late(caller: str, key: str) -> str:
            async with asyncio.timeout(30.0):
                await is_found.wait()
            return patrol

        monkeypatch.setattr(calls, "begun_with", found_late)
        server, session = await with_session(made, calls)
        patrol = await made.broker.call("patrol", {}, caller=session.caller)
        began = clock.monotonic()
        assert await _posted(server, session, cancelled(7)) == 202
        assert clock.monotonic() - began == pytest.approx(NOTICE_S, abs=0.01)
        is_found.set()
        assert (await closed(made.broker, patrol)).outcome == "cancelled"
        began = clock.monotonic()
        assert await _posted(server, session, cancelled(8)) == 202
        assert clock.monotonic() == began, "what is carried out at once is answered at once"


async def _posted(server: McpServer, session: Session, message: Incoming) -> int:
    """The status of the answer to a message of a session."""
    app = FastAPI()
    mount_mcp(app, server)
    body: Message = {"type": "http.request", "body": message.model_dump_json(exclude_none=True).encode()}
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b""}
    sent: list[Message] = []

    async def receive() -> Message:
        return body

    async def send(message: Message) -> None:
        sent.append(message)

    await app({**scope, "headers": [(b"mcp-session-id", session.id.encode())]}, receive, send)
    status: int = sent[0]["status"]
    return status


@pytest.mark.feature("F8")
@pytest.mark.parametrize("token", [True, False])
def test_a_cancel_that_overtakes_its_request_counts(token: bool) -> None:
    with served() as bridge:
        session = initialized(bridge)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert bridge.post("/mcp", cancelled, headers=session).status_code == 202
        late = call(7, "follow", description="ann")
        if not token:
            del late["params"]["_meta"]
        response = bridge.post("/mcp", late, headers=session)
        assert response.ok
        assert not response.content
        assert bridge.get("/calls").json() == []
        answered = bridge.post("/mcp", call(8, "follow", description="ann"), headers=session)
        assert b"result" in answered.content, "that one was not cancelled"


@pytest.mark.feature("F8")
@pytest.mark.virtual_time
async def test_a_request_that_was_cancelled_gets_no_response_though_its_call_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene() as made:
        calls = BrokerCalls(made.broker)
        begin, asked, goes_on = calls.begin, asyncio.Event(), asyncio.Event()

        async def held_up(*args: Any) -> str:
            asked.set()
            await goes_on.wait()
            return await begin(*args)

        monkeypatch.setattr(calls, "begin", held_up)
        server, session = await with_session(made, calls)
        for id, is_cancelled in ((7, True), (8, False)):
            refused = Incoming.model_validate(call(id, "follow", no="description"))
            answering = asyncio.create_task(server.answer(session, refused))
            await asked.wait()
            if is_cancelled:
                await server.notice(session, cancelled(id))
            goes_on.set()
            assert (await answering is None) is is_cancelled
            asked.clear()
            goes_on.clear()


@pytest.mark.virtual_time
async def test_what_is_cancelled_early_is_remembered_within_bounds() -> None:
    session = Sessions().open("x")
    for id in range(2 * MAX_REQUESTS):
        session.cancel_early(id, "enough")
    session.cancel_early("x" * 201, "enough")
    session.cancel_early(2**63, "enough")
    for id, reason in ((0, ""), (MAX_REQUESTS, "enough"), (2 * MAX_REQUESTS - 1, "enough")):
        with session.request(id) as request:
            assert request.cancelled == reason
    await asyncio.sleep(EARLY_S + 1.0)
    with session.request(MAX_REQUESTS + 1) as request:
        assert request.cancelled == ""


@pytest.mark.virtual_time
async def test_of_the_reasons_of_requests_that_were_given_up_little_is_kept() -> None:
    session, long = Sessions().open("x"), "\U0001f600" * 4000
    session.cancel_early(1, long)
    with session.request(1) as early:
        assert early.cancelled == long[:100]
    with session.request(2) as late:
        late.give_up(long)
        assert late.cancelled == long[:100]


def test_when_all_are_in_use_a_new_one_is_refused() -> None:
    sessions = Sessions()
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_SESSIONS):
            stack.enter_context(sessions.open("x").stream())
        with pytest.raises(SessionsBusyError, match="are at work"):
            sessions.open("x")


@pytest.mark.feature("F8")
def test_a_request_that_comes_again_acts_no_second_time() -> None:
    with served() as bridge:
        session = initialized(bridge)
        first = bridge.post("/mcp", call(7, "follow", description="ann"), headers=session)
        assert b"result" in first.content
        again = bridge.post("/mcp", call(7, "follow", description="ann"), headers=session)
        assert b"request 7 was made before in this session; each needs an id of its own" in again.content
        assert len(bridge.get("/calls").json()) == 1
        other = bridge.post("/mcp", call(7, "follow", description="ann"), headers=initialized(bridge))
        assert b"result" in other.content, "another session has ids of its own"


def test_requests_that_were_dropped_do_not_keep_others_from_being_cancelled() -> None:
    session = Sessions().open("x")
    for id in range(3 * MAX_REQUESTS):
        with contextlib.suppress(ConnectionError), session.request(id) as request:
            request.call_id = f"call-{id}"
            raise ConnectionError
    with session.request("new") as request:
        assert session.find("new") is request
    # Who leaves and then gives the request up has still been heard.
    newest = session.find(3 * MAX_REQUESTS - 1)
    assert newest is not None
    assert newest.call_id == f"call-{3 * MAX_REQUESTS - 1}"
    with contextlib.ExitStack() as stack:
        for id in range(MAX_REQUESTS):
            stack.enter_context(session.request(f"w{id}"))
        with pytest.raises(RpcError, match="wait already"):
            stack.enter_context(session.request("one more"))
        with pytest.raises(RpcError, match="id of its own"):
            stack.enter_context(session.request("w1"))


def initialized(bridge: Served) -> dict[str, str]:
    """The headers of a new session."""
    return {"Mcp-Session-Id": bridge.post("/mcp", INITIALIZE).headers["mcp-session-id"]}


def call(id: int | str, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, "_meta": {"progressToken": f"t{id}"}}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


@pytest.mark.slow
@pytest.mark.feature("F8")
def test_cancelling_works_after_many_requests_whose_clients_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REQUESTS", 4)
    with served() as bridge:
        session = initialized(bridge)
        for id in range(6):
            with bridge.post("/mcp", call(id, "search"), headers=session, stream=True) as response:
                next(response.iter_content(1))
        asked = threading.Thread(target=lambda: bridge.post("/mcp", call("last", "search"), headers=session))
        asked.start()
        wait_for(lambda: len(bridge.get("/calls?state=open").json()) == 7)
        newest = bridge.get("/calls?state=open").json()[-1]["call_id"]
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "last"}}
        assert bridge.post("/mcp", cancelled, headers=session).status_code == 202
        asked.join(10)
        assert bridge.get(f"/calls/{newest}").json()["outcome"] == "cancelled"


@pytest.mark.feature("F8")
def test_a_body_that_is_too_large_leaves_the_connection_usable() -> None:
    with served() as bridge, contextlib.closing(HTTPConnection("127.0.0.1", bridge.port, timeout=10)) as client:
        session = {**initialized(bridge), "Content-Type": "application/json"}

        def post(body: bytes | Iterator[bytes]) -> tuple[int, bytes]:
            client.request("POST", "/mcp", body, session, encode_chunked=True)
            response = client.getresponse()
            return response.status, response.read()

        ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
        assert post(ping)[0] == 200
        connection = client.sock
        large = json.dumps(call(1, "follow", description="x" * 2_000_000)).encode()
        assert post(large)[0] == 413
        assert post(b"x" * 100_000 for _ in range(20))[0] == 413
        assert post(ping) == (200, b'{"jsonrpc":"2.0","id":2,"result":{}}')
        assert client.sock is connection
        # What is out of all measure is not read.
        client.request("POST", "/mcp", headers={**session, "Content-Length": str(MAX_DRAINED + 1)})
        assert client.getresponse().status == 413
