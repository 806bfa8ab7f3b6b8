"""The rights of a hub's model and of its operators."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams.errors import CallRejectedError
from dimos_streams.fleet.lanes import lane_of
from tests.bridge.fleet.desk import answer_to, call, desk
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.mcp.test_whose_calls import Homing
from tests.bridge.scene import closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "why"),
    [
        ("POST", "/calls", call("at_once", value=1), 409, "begins with 'mcp/'"),
        ("POST", "/calls", call("patrol_secretly", caller="mcp/1"), 404, "patrol_secretly"),
        ("POST", "/robots/stop", {}, 404, "nothing that a hub's model may ask"),
        ("POST", "/calls/cancel", {}, 404, "nothing that a hub's model may ask"),
        ("POST", "/settings", {"assignments": ["worker.pace=2"]}, 404, "nothing that a hub's model may ask"),
        ("GET", "/calls", None, 404, "nothing that a hub's model may ask"),
    ],
)
async def test_a_model_has_no_operators_rights(
    method: str, path: str, body: dict[str, Any] | None, status: int, why: str
) -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(1, path, method=method, role="model", body=body)
        answer = await answer_to(hub, 1)
        assert answer.status == status
        assert why in answer.body["detail"]
        assert not await made.broker.calls()


async def test_an_operator_takes_no_name_of_an_mcp_client() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(1, "/calls", body=call("at_once", caller="mcp/7", value=3))
        answer = await answer_to(hub, 1)
        assert (answer.status, "'mcp/7' is the name of an MCP client" in answer.body["detail"]) == (409, True)
        assert not await made.broker.calls()


async def test_a_model_calls_what_mcp_clients_may() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(1, "/calls?wait=close", role="model", body=call("at_once", caller="mcp/7", value=3))
        answer = await answer_to(hub, 1)
        assert (answer.status, answer.body["caller"]) == (201, "mcp/7")
        hub.command(2, "/calls/unknown/cancel", role="model", body={})
        assert (await answer_to(hub, 2)).status == 404


async def test_a_model_may_stop_what_moves_and_nothing_else_of_operators() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        await made.add(Homing(name="homing"))
        await made.offered("talk")
        home, talk = [await made.broker.call(name, {}, caller="operator") for name in ("go_home", "talk")]
        hub.command(1, f"/calls/{home}", method="GET", role="model")
        hub.command(2, f"/calls/{talk}/cancel", role="model", body={})
        hub.command(3, f"/calls/{home}/cancel", role="model", body={})
        assert [(await answer_to(hub, id)).status for id in (1, 2, 3)] == [409, 409, 202]
        assert (await closed(made.broker, home)).outcome == "cancelled"
        assert [view.call_id for view in await made.broker.calls(open_only=True)] == [talk]


async def test_what_waits_for_calls_that_a_model_ends_through_a_hub_does_not_begin_unless_it_is_an_operators() -> (
    None
):
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        broker = made.broker
        await made.add(Homing(name="homing"))
        await made.offered("talk")
        talk = await broker.call("talk", {}, caller="operator")
        following = await broker.call("follow", {"description": "ann"}, caller="mcp/7")
        theirs, operators = (
            asyncio.create_task(broker.call("at_once", {"value": 1}, caller=caller, lease_wait_s=60.0))
            for caller in ("mcp/8", "operator")
        )
        await until(lambda: len(broker.ledger.waiting) == 2)
        body = {"calls": [talk, following, "unknown"], "caller": "mcp/7", "reason": "enough"}
        hub.command(1, "/calls/cancel", role="model", body={**body, "caller": "operator"})
        hub.command(2, "/calls/cancel", role="model", body=body)
        assert (await answer_to(hub, 1)).status == 404
        answer = await answer_to(hub, 2)
        assert (answer.status, answer.body) == (200, {"ended": [following], "going_on": []})
        with pytest.raises(CallRejectedError, match="since it was asked for"):
            await theirs
        assert (await closed(broker, await operators)).outcome == "completed"
        assert (await broker.view(talk)).state == "open"
        assert lane_of("POST", "/calls/cancel", "model") == "models' cancels"
