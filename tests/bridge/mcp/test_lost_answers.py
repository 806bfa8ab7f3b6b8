"""Clients whose stream is cut before the answer, and who come again with the id of its event."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from dimos_streams.bridge.mcp.awaited import Awaited
from dimos_streams.bridge.mcp.calls import BrokerCalls
from dimos_streams.bridge.mcp.messages import Incoming
from dimos_streams.bridge.mcp.server import McpServer
from dimos_streams.bridge.mcp.sessions import MAX_ALL_STREAMS, MAX_ANSWERS, MAX_SESSIONS, Session
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.gateway import CallView
from tests.bridge.mcp.servers import begun_again, mcp_server, with_session
from tests.bridge.mcp.test_mcp import INITIALIZE
from tests.bridge.mcp.test_sessions import call, cancelled
from tests.bridge.mcp.test_whose_calls import Homing
from tests.bridge.scene import scene
from tests.bridge.serving import Served, served

pytestmark = pytest.mark.feature("F8")


async def cut(server: McpServer, session: Session) -> Awaited:
    """Where a client goes on that has asked for a call which says nothing, and has lost the connection."""
    asked = server.follow(session, Incoming.model_validate(call(7, "patrol")), resumes=True)
    async with contextlib.aclosing(asked) as messages:
        awaited = await anext(messages)
    assert isinstance(awaited, Awaited)
    return awaited


async def answers(server: McpServer, session: Session, awaited: Awaited) -> list[dict[str, Any]]:
    return [each async for each in server.answer_again(session, awaited) if isinstance(each, dict)]


@pytest.mark.parametrize("is_known", [True, False], ids=["the same server", "the next server"])
@pytest.mark.parametrize("gives_up", [True, False])
@pytest.mark.virtual_time
async def test_the_answer_comes_on_the_next_stream_unless_its_request_was_cancelled(
    is_known: bool, gives_up: bool
) -> None:
    async with scene() as made:
        server, session = await with_session(made)
        awaited = await cut(server, session)
        if not is_known:
            server, session = mcp_server(made), Session(session.id, session.caller)
        reading = asyncio.create_task(answers(server, session, awaited))
        await asyncio.sleep(1.0)
        if gives_up:
            await server.notice(session, cancelled(7))
        else:
            await made.broker.cancel(awaited.call_id, "enough")
        await made.broker.wait(awaited.call_id, "close", 5.0)
        got = await reading
        assert (await made.broker.view(awaited.call_id)).outcome == "cancelled"
        assert [each["id"] for each in got] == [] if gives_up else [7]
        if not gives_up:
            content = got[0]["result"]["structuredContent"]
            assert (content["call_id"], content["outcome"]) == (awaited.call_id, "cancelled")
            assert "enough" in content["text"]


@pytest.mark.virtual_time
async def test_an_id_brings_nobody_the_answer_of_a_call_that_is_not_theirs_nor_ends_it() -> None:
    async with scene() as made:
        await made.add(Homing(name="homing"))
        await made.offered("talk")
        server, session = await with_session(made)
        talk = await made.broker.call("talk", {}, caller="operator")
        for id in (talk, "nobody"):
            (answer,) = await answers(server, session, Awaited(id, 0, 7))
            assert answer["result"]["isError"]
            assert "no call has the id" in answer["result"]["structuredContent"]["text"]
        theirs = await made.broker.call("patrol", {}, caller="mcp/other")
        (answer,) = await answers(server, session, Awaited(theirs, 0, 7))
        assert "was begun by 'mcp/other'" in answer["result"]["structuredContent"]["text"]
        await server.notice(session, cancelled(7))
        await asyncio.sleep(5.0)
        assert {call.call_id for call in await made.broker.calls(open_only=True)} == {talk, theirs}


def test_an_id_names_what_it_was_made_of_and_other_texts_name_nothing() -> None:
    for made in (Awaited("c-1", 1207, 7), Awaited("c-1", 0, "a\r\n\u2028\U0001f600")):
        id, retry, data, *end = made.frame.decode("ascii").split("\n")
        assert Awaited.named(id.removeprefix("id: ")) == made
        assert (retry, data, end) == ("retry: 3000", "data:", ["", ""])
    for text in ("", "1207", "[]", '["c-1", -1, 7]', '["c-1", 1, true]', '["c-1", 1, null]', '["c-1", "1", 7]', "["):
        assert Awaited.named(text) is None


def test_clients_of_the_newest_version_hear_where_they_go_on() -> None:
    with served() as bridge:
        session = {"Mcp-Session-Id": bridge.post("/mcp", INITIALIZE).headers["Mcp-Session-Id"]}
        plain = call(1, "at_once", value=1)
        del plain["params"]["_meta"]
        before = bridge.post("/mcp", plain, headers={**session, "MCP-Protocol-Version": "2025-06-18"})
        assert before.headers["Content-Type"] == "application/json"
        newest = {**session, "MCP-Protocol-Version": "2025-11-25"}
        first, answer, _ = bridge.post("/mcp", {**plain, "id": 2}, headers=newest).text.split("\n\n")
        id, *_ = first.removeprefix("id: ").split("\n")
        assert again(bridge, newest, id) == answer
        assert answer.startswith('event: message\ndata: {"jsonrpc":"2.0","id":2,"result":')


def test_there_is_no_stream_for_the_answer_to_a_request_that_was_cancelled() -> None:
    """The official client comes again for ever while streams end without an answer; of refusals it takes two."""
    with served() as bridge:
        session = {"Mcp-Session-Id": bridge.post("/mcp", INITIALIZE).headers["Mcp-Session-Id"]}
        newest = {**session, "MCP-Protocol-Version": "2025-11-25"}
        with bridge.post("/mcp", call(2, "patrol"), headers=newest, stream=True) as asked:
            lines = asked.iter_lines()
            id = next(lines).decode().removeprefix("id: ")
            bridge.post("/mcp", cancelled(2).model_dump(exclude_none=True), headers=newest)
            assert not [line for line in lines if line.startswith(b"event:")]
        refused = bridge.get("/mcp", headers={**newest, "Last-Event-ID": id})
        assert (refused.status_code, refused.json()["id"]) == (410, 2)


@pytest.mark.parametrize("is_known", [True, False], ids=["the same server", "the next server"])
@pytest.mark.virtual_time
async def test_who_waits_again_can_cancel_whatever_became_of_the_first_answer_and_of_other_sessions(
    is_known: bool,
) -> None:
    async with scene() as made:
        server, session = await with_session(made)
        asked = server.follow(session, Incoming.model_validate(call(7, "patrol")), resumes=True)
        awaited, *_ = [each async for each in asked]  # the last went into a connection that was cut
        assert isinstance(awaited, Awaited)
        server = server if is_known else mcp_server(made)
        waits = server.sessions.get(session.id)
        assert waits
        reading = asyncio.create_task(answers(server, waits, awaited))
        await asyncio.sleep(1.0)
        for _ in range(MAX_SESSIONS):
            server.sessions.open("other")
        assert server.sessions.get(session.id) is waits
        await server.notice(waits, cancelled(7))
        assert await reading == []
        assert (await made.broker.view(awaited.call_id)).outcome == "cancelled"
        assert not waits.busy


@pytest.mark.virtual_time
async def test_the_next_server_ends_the_call_of_a_request_that_is_cancelled_before_its_client_comes_again() -> None:
    async with scene() as made:
        server, session = await with_session(made)
        awaited = await cut(server, session)
        server, session = begun_again(made, session)
        await server.notice(session, cancelled(8))
        assert (await made.broker.view(awaited.call_id)).state != "closed"
        await server.notice(session, cancelled(7))
        await made.broker.wait(awaited.call_id, "close", 5.0)
        assert (await made.broker.view(awaited.call_id)).outcome == "cancelled"
        assert session.has_given_up(7, awaited.call_id)


@pytest.mark.virtual_time
async def test_a_request_that_was_answered_is_not_cancelled_by_what_comes_late() -> None:
    async with scene() as made:
        server, session = await with_session(made)
        answer = await server.answer(session, Incoming.model_validate(call(7, "patrol")))
        assert answer
        await server.notice(session, cancelled(7))
        await asyncio.sleep(5.0)
        assert (await made.broker.view(answer["result"]["structuredContent"]["call_id"])).state == "open"


class Unreadable(BrokerCalls):
    """Calls of which nobody can see how they stand, as at a hub whose database is away."""

    async def view(self, call_id: str) -> CallView:
        raise SkillError("the hub's database is away")


@pytest.mark.virtual_time
async def test_a_call_that_has_begun_is_no_error_if_nobody_can_see_how_it_stands() -> None:
    async with scene() as made:
        server, session = await with_session(made, Unreadable(made.broker))
        first = await server.answer(session, Incoming.model_validate(call(7, "at_once", value=1)))
        assert first
        content = first["result"]["structuredContent"]
        second = (await answers(server, session, Awaited(content["call_id"], content["cursor"], 7)))[0]
        for result in (first["result"], second["result"]):
            assert not result["isError"]
            assert (
                f'is away\n\nAs soon as it can be seen, skill_updates(call_id="{content["call_id"]}", after='
                in (result["structuredContent"]["text"])
            )


def again(bridge: Served, session: dict[str, str], id: str) -> str:
    answer, end = bridge.get("/mcp", headers={**session, "Last-Event-ID": id}).text.split("\n\n")
    assert end == ""
    return answer


@pytest.mark.virtual_time
async def test_streams_for_answers_count_among_all_and_not_among_the_two_of_a_session() -> None:
    async with scene() as made:
        server, session = await with_session(made)
        awaited = await cut(server, session)
        session.streams = 2
        assert server.why_not_listen(session)
        async with asyncio.TaskGroup() as waiting:
            for number in range(MAX_ALL_STREAMS):
                its = session if number < MAX_ANSWERS else Session(f"other {number}", session.caller)
                assert not server.why_not_listen(its, awaited)
                waiting.create_task(answers(server, its, awaited))
                await asyncio.sleep(0)
            assert "64 streams are open already" in server.why_not_listen(its, awaited)
            await made.broker.cancel(awaited.call_id, "enough")


@pytest.mark.virtual_time
async def test_who_waits_for_many_answers_leaves_others_a_stream() -> None:
    async with scene() as made:
        server, session = await with_session(made)
        awaited = await cut(server, session)
        async with asyncio.TaskGroup() as waiting:
            for _ in range(MAX_ALL_STREAMS):  # in one moment: no request is refused before the others wait
                waiting.create_task(answers(server, session, awaited))
            await asyncio.sleep(0)
            assert session.answers == MAX_ANSWERS
            assert f"this session waits for {MAX_ANSWERS} answers" in server.why_not_listen(session, awaited)
            assert not server.why_not_listen(session), "it may still listen to what changes"
            assert not server.why_not_listen(Session("other", session.caller), awaited)
            await made.broker.cancel(awaited.call_id, "enough")
        assert session.answers == 0
