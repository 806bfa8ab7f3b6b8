"""Nothing counts as delivered because it was sent: clients read by cursor, whatever became of them or the bridge."""

from __future__ import annotations

import asyncio
import itertools
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from dimos_streams.bridge.mcp.reading import MAX_EVENTS, read_page
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.journal import Journal
from tests.bridge.mcp.test_mcp import INITIALIZE, connected, structured
from tests.bridge.scene import closed, event
from tests.bridge.serving import Served, served
from tests.helpers import wait_for

if TYPE_CHECKING:
    from mcp import Client


async def read(client: Client, **arguments: Any) -> dict[str, Any]:
    return structured(await client.call_tool("skill_updates", {"wait_s": 0, **arguments}))


def texts(page: dict[str, Any]) -> list[str]:
    return [event["text"] for event in page["events"]]


@pytest.mark.slow
@pytest.mark.feature("F8")
def test_reading_again_gives_the_same_again_to_all() -> None:
    async def scenario() -> None:
        async with connected() as (made, client):
            done = structured(await client.call_tool("count", {"label": "x", "to": 3}))
            call_id = done["call_id"]
            await closed(made.broker, call_id)
            waits = [read(client, call_id=call_id, after=done["cursor"], wait_s=5) for _ in range(2)]
            pages = await asyncio.gather(*waits)
            assert texts(pages[0]) == texts(pages[1]) == ["x 2", "x 3", "x"]
            assert pages[0]["call"] == {"call_id": call_id, "state": "closed", "outcome": "completed"}
            assert texts(await read(client, call_id=call_id)) == ["x 1", "x 2", "x 3", "x"]
            behind = pages[0]["events"][0]["offset"]
            assert texts(await read(client, call_id=call_id, after=behind)) == ["x 3", "x"]
            # A call that is over has nothing more to wait for.
            async with asyncio.timeout(5):
                assert texts(await read(client, call_id=call_id, after=pages[0]["cursor"], wait_s=50)) == []

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.feature("F8")
def test_a_wait_that_was_given_up_swallows_nothing() -> None:
    async def scenario() -> None:
        async with connected() as (_, client):
            begun = structured(await client.call_tool("follow", {"description": "ann"}))
            after = begun["cursor"]
            waiting = asyncio.create_task(read(client, after=after, wait_s=50))
            await asyncio.sleep(0.1)
            waiting.cancel()
            await asyncio.wait([waiting])
            await client.call_tool("cancel_call", {"call_id": begun["call_id"], "reason": "enough"})
            assert texts(await read(client, after=after)) == ["enough"]

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.feature("F8")
def test_a_new_session_and_a_new_bridge_know_what_became_of_a_call(tmp_path: Path) -> None:
    with served(journal=tmp_path / "journal.sqlite") as bridge:
        first = Raw(bridge)
        first.leave("hang")
        second = Raw(bridge)
        (call,) = second.use("list_calls", mine=True)["calls"]
        hanging = call["call_id"]
        page = second.use("skill_updates", after=0, wait_s=10)
        assert [(event["call_id"], event["data"]["outcome"]) for event in page["events"]] == [(hanging, "timed_out")]

        bridge.run(bridge.scene.kill_bridge())
        bridge.run(bridge.scene.start_bridge())
        bridge.run(bridge.scene.offered("hang"))
        third = Raw(bridge)
        found = third.use("get_call", call_id=hanging)
        assert (found["state"], found["outcome"]) == ("closed", "timed_out")
        assert third.use("skill_updates", call_id=hanging)["events"] == page["events"]
        assert third.use("skill_updates", after=page["cursor"], wait_s=0)["events"] == []
        assert third.use("skill_updates", after=page["cursor"], wait_s=0)["cursor"] >= page["cursor"]


class Raw:
    """A client of which nothing is left but its name when it goes."""

    def __init__(self, bridge: Served) -> None:
        self._bridge = bridge
        self._ids = itertools.count(1)
        self._headers = {"Mcp-Session-Id": bridge.post("/mcp", INITIALIZE).headers["mcp-session-id"]}

    def use(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool, as JSON."""
        request = self._request(tool, arguments)
        with requests.Session() as session:
            answer = session.send(request, timeout=20.0).json()
        result: dict[str, Any] = answer["result"]
        assert not result["isError"], result
        return dict(result["structuredContent"])

    def leave(self, skill: str) -> None:
        """Begin a call, and go without having heard of it."""
        request = self._request(skill, {})
        head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        with socket.create_connection(("127.0.0.1", self._bridge.port)) as connection:
            connection.sendall(f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._bridge.port}\r\n{head}\r\n".encode())
            assert isinstance(request.body, bytes)
            connection.sendall(request.body)
            wait_for(lambda: self._bridge.broker.ledger.calls)

    def _request(self, tool: str, arguments: dict[str, Any]) -> requests.PreparedRequest:
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": "tools/call", "params": params}
        return requests.Request("POST", f"{self._bridge.url}/mcp", json=body, headers=self._headers).prepare()


@pytest.mark.virtual_time
async def test_pages_are_bounded_and_whole_together() -> None:
    journal = Journal()
    journal.open()
    broadcast = JournalBroadcast(journal)
    events = [event(1, "open"), *(event(seq, "update") for seq in range(2, 130)), event(130), event(131, "close")]
    broadcast.publish(journal.append(events))
    after, seen, pages = 0, [], 0
    while True:
        page = await read_page(broadcast, after=after, wait_s=0, call_id="c1")
        seen += [entry.event.seq for entry in page.entries]
        assert len(page.entries) <= MAX_EVENTS
        after, pages = page.cursor, pages + 1
        if not page.more:
            break
    assert (seen, pages, after) == ([*range(2, 130), 131], 3, 131)
    assert (await read_page(broadcast, after=None, wait_s=0, call_id="nobody")).cursor == 131
    gone = await read_page(broadcast, after=500, wait_s=0, call_id="c1")
    assert gone.entries[0].type == "gap"
    # Waits for updates, and only for those that it was asked for.
    waiting = asyncio.create_task(read_page(broadcast, after=131, wait_s=30, caller="somebody"))
    await asyncio.sleep(1)
    broadcast.publish(journal.append([event(1, "update", call_id="c2"), event(1, "progress", caller="somebody")]))
    await asyncio.sleep(1)
    assert not waiting.done()
    broadcast.publish(journal.append([event(2, "update", call_id="c3", caller="somebody")]))
    assert [entry.offset for entry in (await waiting).entries] == [134]
    assert (await read_page(broadcast, after=134, wait_s=30, caller="somebody")).cursor == 134
    journal.close()


@pytest.mark.feature("K1")
@pytest.mark.virtual_time
async def test_what_a_child_says_is_read_by_its_id_and_not_by_who_called_its_parent() -> None:
    journal = Journal()
    journal.open()
    broadcast = JournalBroadcast(journal)
    broadcast.publish(journal.append([event(1, "update", call_id="c1~1"), event(1, "update", call_id="c1")]))
    page = await read_page(broadcast, after=0, wait_s=0, caller="agent")
    assert [entry.call_id for entry in page.entries] == ["c1"]
    page = await read_page(broadcast, after=0, wait_s=0, call_id="c1~1")
    assert [entry.call_id for entry in page.entries] == ["c1~1"]
    journal.close()


@pytest.mark.virtual_time
async def test_a_beginning_that_is_not_kept_is_a_gap() -> None:
    journal = Journal()
    journal.open()
    broadcast = JournalBroadcast(journal)
    broadcast.publish(journal.append([event(7, "update"), event(8, "close")]))
    page = await read_page(broadcast, after=None, wait_s=0, call_id="c1")
    assert [entry.type for entry in page.entries] == ["gap", "update", "close"]
    journal.close()


@pytest.mark.slow
@pytest.mark.feature("F8")
def test_calls_are_listed_in_pages_and_by_what_is_asked() -> None:
    async def scenario() -> None:
        async with connected() as (made, client):
            begun = [structured(await client.call_tool("at_once", {"value": n}))["call_id"] for n in range(3)]
            other = await made.broker.call("at_once", {"value": 9}, caller="somebody")
            await closed(made.broker, other)
            first = structured(await client.call_tool("list_calls", {"limit": 2}))
            assert ([call["call_id"] for call in first["calls"]], first["more"]) == ([other, begun[2]], True)
            rest = structured(await client.call_tool("list_calls", {"before": begun[2]}))
            assert ([call["call_id"] for call in rest["calls"]], rest["more"]) == ([begun[1], begun[0]], False)
            mine = structured(await client.call_tool("list_calls", {"mine": True, "skill": "at_once"}))
            assert [call["call_id"] for call in mine["calls"]] == begun[::-1]
            assert structured(await client.call_tool("list_calls", {"state": "open"}))["calls"] == []

    asyncio.run(scenario())
