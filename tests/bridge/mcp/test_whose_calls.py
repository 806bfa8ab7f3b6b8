"""A client ends its own calls only; motion it may stop whoever has begun it, and the call says who has ended it."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.bridge.mcp.calls import BrokerCalls
from dimos_streams.bridge.mcp.sessions import Session
from dimos_streams.bridge.mcp.tools import McpTools
from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import skill
from dimos_streams.tool_stream.gateway import CallView
from tests.bridge.scene import closed, scene


@pytest.mark.feature("F8")
@pytest.mark.virtual_time
async def test_a_client_ends_its_own_calls_and_every_motion() -> None:
    async with scene() as made:
        broker, own = made.broker, Session("1", "mcp/one")
        tools = McpTools(BrokerCalls(broker), broker.ledger.broadcast)

        async def end(call_id: str) -> str:
            return str((await tools.use_own(own, "cancel_call", {"call_id": call_id}))["content"][0]["text"])

        patrol = await broker.call("patrol", {}, caller="cli")
        follow = await broker.call("follow", {"description": "ann"}, caller="cli")
        search = await broker.call("search", {}, caller="mcp/other")
        for call_id, whose in ((patrol, "cli"), (follow, "cli"), (search, "mcp/other")):
            theirs = rf"^call '{call_id}' of '\w+' was begun by '{whose}', and is theirs to end; .*all"
            with pytest.raises(SkillError, match=theirs):
                await end(call_id)
        assert "is over: cancelled" in await end(await broker.call("search", {}, caller="mcp/one"))

        left = await broker.call("search", {}, caller="mcp/one")
        assert await end("all") == "2 calls have ended"
        views: list[CallView] = [await closed(broker, call_id) for call_id in (follow, left)]
        assert [(view.outcome, view.text) for view in views] == [
            ("cancelled", "cancelled by the client (by 'mcp/one')")
        ] * 2
        assert {view.call_id for view in await broker.calls(open_only=True)} == {patrol, search}
        assert await end("all") == "no call of yours was open, and none of others' that may move a robot"


class Homing(Module):
    """A module that operators have."""

    @skill(resources={"base"}, motion=True, audience="operator")
    async def go_home(self) -> None:
        """Drive for long."""
        await asyncio.sleep(1000)

    @skill(audience="operator")
    async def talk(self) -> None:
        """Talk for long."""
        await asyncio.sleep(1000)


@pytest.mark.feature("F8")
@pytest.mark.virtual_time
async def test_a_client_stops_a_motion_of_which_it_may_not_know() -> None:
    async with scene() as made:
        await made.add(Homing(name="homing"))
        await made.offered("talk")
        broker = made.broker
        tools = McpTools(BrokerCalls(broker), broker.ledger.broadcast)
        home, talk = [await broker.call(name, {}, caller="operator") for name in ("go_home", "talk")]
        with pytest.raises(SkillError, match="no call has the id"):
            await tools.use_own(Session("1", "mcp/one"), "cancel_call", {"call_id": home})
        report = await tools.use_own(Session("1", "mcp/one"), "cancel_call", {"call_id": "all"})
        assert report["content"][0]["text"] == "1 call has ended"
        assert (await closed(broker, home)).text == "cancelled by the client (by 'mcp/one')"
        assert [view.call_id for view in await broker.calls(open_only=True)] == [talk]
