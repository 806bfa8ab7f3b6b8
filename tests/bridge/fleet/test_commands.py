"""Commands of a hub are requests of the bridge, by the bridge's own gates, and reach nothing else."""

from __future__ import annotations

import asyncio

import pytest

from tests.bridge.fleet.desk import answer_to, call, desk
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.scene import closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


async def test_a_command_is_a_request_of_the_bridge() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(1, "/calls?wait=close", body=call("at_once", value=3))
        answer = await answer_to(hub, 1)
        assert (answer.outcome, answer.status, answer.body["result"]) == ("answered", 201, 3)
        call_id = answer.body["call_id"]
        assert answer.headers["Location"] == f"/calls/{call_id}"
        hub.command(2, f"/calls/{call_id}", method="GET")
        assert (await answer_to(hub, 2)).body["caller"] == "me"
        hub.command(3, "/calls", body=call("nonsense"))
        answer = await answer_to(hub, 3)
        assert (answer.outcome, answer.status) == ("answered", 404)
        assert answer.body["type"] == "urn:dimos-streams:problem:unknown-skill"
        hub.command(4, "/robots/stop", body={"reason": "enough"})
        assert (await answer_to(hub, 4)).status == 200
        assert made.broker.stops.stopped().stops
        hub.command(5, "/calls?nonsense=1", body=call("at_once", value=3))
        assert (await answer_to(hub, 5)).status == 422


@pytest.mark.parametrize(
    "path",
    [
        "//127.0.0.1:1/healthz",
        "/healthz#x",
        "/calls%3Flimit=1",
        "/calls/a%23b",
        "/calls/../settings",
        "/calls/%2e%2e",
    ],
)
async def test_a_path_is_taken_as_it_stands(path: str) -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(1, path, method="GET")
        assert (await answer_to(hub, 1)).outcome == "refused"


async def test_of_a_hub_that_speaks_another_protocol_no_command_is_taken() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub) as taking:
        hub.protocol += 1
        hub.cut()
        await until(lambda: "it speaks protocol 2 (version hub), this robot 1" in taking._link.troubles.text)
        hub.command(1, "/robots/stop")
        await asyncio.sleep(6.0)
        assert (taking.connected, hub.answers) == (False, [])
        hub.protocol -= 1
        assert (await answer_to(hub, 1)).outcome in ("answered", "expired")
        assert taking._link.troubles.text == ""


@pytest.mark.parametrize(
    "path", ["/mcp", "/tool_streams", "/monitor", "/metrics", "/", "//calls", "/calls/../settings"]
)
async def test_nothing_else_is_reached_through_the_door(path: str) -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(1, path, method="GET")
        assert (await answer_to(hub, 1)).outcome == "refused"


async def test_calls_begun_by_a_hub_go_on_when_it_has_gone() -> None:
    hub = FakeHub()
    async with scene() as made:
        async with desk(made, hub):
            hub.command(1, "/calls?wait=close", body=call("follow", description="her", steps=20))
            await until(lambda: made.broker.ledger.calls.open)
        (running,) = await made.broker.calls()
        assert (await closed(made.broker, running.call_id)).result == "followed her"
