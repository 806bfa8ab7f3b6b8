"""Commands that come too late, or that an order of an operator has overtaken, are not carried out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams.fleet.protocol import MAX_EXPIRY_S
from tests.bridge.fleet.desk import answer_to, call, desk
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.scene import closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


@pytest.mark.slow
@pytest.mark.parametrize(("held_up_s", "outcome"), [(4.7, "answered"), (4.9, "expired"), (60.0, "expired")])
async def test_a_command_that_was_held_up_on_the_way_is_not_carried_out(held_up_s: float, outcome: str) -> None:
    hub = FakeHub(held_up_s=held_up_s)
    async with scene() as made, desk(made, hub):
        hub.command(1, "/calls", within_s=5.0, body=call("at_once", value=3))
        answer = await answer_to(hub, 1)
        assert answer.outcome == outcome
        assert len(await made.broker.calls()) == (outcome == "answered")


async def test_the_request_for_commands_counts_too() -> None:
    """It was long under way: the hub has counted from when it came, the robot does from when it was sent."""
    hub = FakeHub(delay_s=1.9)
    async with scene() as made, desk(made, hub):
        hub.command(1, "/calls", within_s=1.5, body=call("at_once", value=3))
        assert (await answer_to(hub, 1)).outcome == "expired"
        assert not await made.broker.calls()


async def test_a_stream_that_began_slowly_is_asked_for_again() -> None:
    """What it took to begin would be taken off the time of each command for as long as it lasts."""
    hub = FakeHub(delay_s=11.0)
    hub.before = lambda: setattr(hub, "delay_s", 0.0)
    async with scene() as made, desk(made, hub):
        assert hub.streams == 2
        hub.command(1, "/calls?wait=close", body=call("at_once", value=3))
        assert (await answer_to(hub, 1)).outcome == "answered"


@pytest.mark.slow
async def test_a_link_that_is_always_slow_is_kept_until_a_command_comes_too_late() -> None:
    hub = FakeHub(delay_s=3.0)
    async with scene() as made, desk(made, hub) as commands:
        await asyncio.sleep(60.0)
        assert (hub.streams, commands.connected) == (3, True)
        hub.command(1, "/calls?wait=close", body=call("at_once", value=3))
        assert (await answer_to(hub, 1)).outcome == "answered"
        hub.command(2, "/calls", within_s=1.0, body=call("at_once", value=3))
        assert (await answer_to(hub, 2)).outcome == "expired"
        await until(lambda: hub.streams > 3, timeout_s=60.0)


async def test_a_call_does_not_wait_for_a_resource_beyond_its_commands_time() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        running = await made.broker.call("follow", {"description": "a"}, caller="x")
        body = {**call("at_once", value=3), "lease_wait_s": 30.0}
        hub.command(1, "/calls", within_s=5.0, body=body)
        await asyncio.sleep(6.0)
        await made.broker.cancel(running, "done")
        await closed(made.broker, running)
        answer = await answer_to(hub, 1)
        assert (answer.outcome, answer.status) == ("answered", 409)
        assert "expired" in answer.body["detail"]
        assert [view.skill for view in await made.broker.calls()] == ["follow"]


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ("/robots/stop", "an operator has stopped the robot since it was asked for"),
        ("/calls/cancel", "all calls were ended since it was asked for"),
    ],
)
async def test_a_call_that_an_order_has_overtaken_does_not_begin(order: str, why: str) -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(5, order)
        hub.command(3, "/calls", body=call("at_once", value=3))
        hub.command(2, "/calls", role="model", body=call("at_once", caller="mcp/1", value=3))
        assert (await answer_to(hub, 5)).status == 200
        hub.command(6, "/robots/release")
        assert (await answer_to(hub, 6)).status == 200
        hub.command(4, "/calls", body=call("at_once", value=3))
        for id in (2, 3, 4):
            answer = await answer_to(hub, id)
            assert (answer.outcome, answer.body["type"]) == ("refused", "urn:dimos-streams:problem:call-rejected")
            assert answer.body["detail"].startswith(
                f"'at_once' does not begin: {why}; what is still wanted is to be asked for anew"
            )
        assert not await made.broker.calls()
        hub.command(7, "/calls", body=call("at_once", value=3))
        assert (await answer_to(hub, 7)).status == 201, "it was asked for later"


async def test_a_call_that_an_order_has_overtaken_does_not_begin_after_a_restart_either(tmp_path: Path) -> None:
    hub = FakeHub()
    journal = tmp_path / "journal.sqlite"
    async with scene(journal=journal) as made, desk(made, hub):
        hub.command(10, "/calls/cancel")
        assert (await answer_to(hub, 10)).status == 200
    hub.forget()
    async with scene(journal=journal) as made, desk(made, hub):
        hub.command(8, "/calls", body=call("at_once", value=3))
        assert "all calls were ended" in (await answer_to(hub, 8)).body["detail"]
        assert not await made.broker.calls()
        await asyncio.sleep(MAX_EXPIRY_S)
        hub.command(9, "/calls", body=call("at_once", value=3))
        assert (await answer_to(hub, 9)).status == 201, "a hub that counts anew"


async def test_an_order_to_end_some_calls_overtakes_no_other_and_undoes_no_note_of_a_stop() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(5, "/calls/cancel", body={"calls": ["c1", "c2"]})
        assert (await answer_to(hub, 5)).status == 200
        hub.command(4, "/calls?wait=close", body=call("at_once", value=3))
        assert (await answer_to(hub, 4)).status == 201
        for id, order in ((6, "/robots/stop"), (7, "/robots/release")):
            hub.command(id, order)
            assert (await answer_to(hub, id)).status == 200
        hub.command(8, "/calls/cancel", body={"calls": ["c1"]})
        assert (await answer_to(hub, 8)).status == 200
        hub.command(3, "/calls", body=call("at_once", value=3))
        assert "an operator has stopped the robot" in (await answer_to(hub, 3)).body["detail"]


async def test_a_call_that_began_before_the_order_is_found_by_its_key() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        body = {**call("at_once", value=3), "idempotency_key": "mine"}
        hub.command(1, "/calls?wait=close", body=body)
        begun = (await answer_to(hub, 1)).body["call_id"]
        hub.command(5, "/calls/cancel")
        assert (await answer_to(hub, 5)).status == 200
        hub.command(2, "/calls", body=body)
        assert (await answer_to(hub, 2)).body == {"call_id": begun}


async def test_a_hub_that_counts_anew_is_refused_nothing_for_long() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(500, "/calls/cancel")
        assert (await answer_to(hub, 500)).status == 200
        await asyncio.sleep(MAX_EXPIRY_S + 1.0)
        hub.command(1, "/calls", body=call("at_once", value=3))
        assert (await answer_to(hub, 1)).status == 201
