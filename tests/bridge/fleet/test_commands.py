"""Commands of a hub: once each, by the bridge's own gates, and never when they are stale."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.bridge.app import create_app
from dimos_streams.bridge.fleet import command_notes
from dimos_streams.bridge.fleet.answers import AnswerBox
from dimos_streams.bridge.fleet.command_notes import CommandNotes
from dimos_streams.bridge.fleet.commands import CommandDesk
from dimos_streams.bridge.fleet.door import Door
from dimos_streams.bridge.fleet.earlier_commands import EarlierCommands
from dimos_streams.bridge.fleet.hub_requests import HubUnreachableError
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.bridge.fleet.troubles import Troubles
from dimos_streams.errors import CallRejectedError
from dimos_streams.fleet.commands import Answer
from dimos_streams.fleet.lanes import lane_of
from dimos_streams.fleet.protocol import MAX_EXPIRY_S
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.mcp.test_whose_calls import Homing
from tests.bridge.scene import Scene, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


@contextlib.asynccontextmanager
async def desk(made: Scene, hub: FakeHub, earlier: EarlierCommands | None = None) -> AsyncIterator[CommandDesk]:
    """A desk for the commands of a hub to a bridge, after what other runs of the robot have taken."""
    bridge = made.bridge
    troubles, notes = Troubles(logging.getLogger("hub"), "http://hub"), CommandNotes(bridge.journal)
    link = LinkContext(hub, troubles, random.Random(1))
    answers = AnswerBox(link, notes)
    door = Door(create_app(bridge.broker, bridge.broadcast), bridge.broker, notes.last_order)
    made_desk = CommandDesk(link, door, notes, answers)
    notes.restore()
    if earlier is not None:
        notes.take_over(earlier.calls, earlier.orders)
    answers.restore()
    tasks = [asyncio.get_running_loop().create_task(work) for work in (made_desk.run(), answers.run())]
    try:
        await until(lambda: made_desk.connected)
        yield made_desk
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def answer_to(hub: FakeHub, id: int) -> Answer:
    await until(lambda: any(answer.id == id for answer in hub.answers), timeout_s=600.0)
    return next(answer for answer in hub.answers if answer.id == id)


async def test_an_answer_that_makes_the_hub_fail_holds_no_other_up() -> None:
    hub = FakeHub(fails_on={1})
    async with scene() as made, desk(made, hub):
        for id in (1, 2, 3):
            hub.command(id, "/healthz", method="GET", body=None)
        await answer_to(hub, 2)
        await answer_to(hub, 3)
        hub.fails_on.clear()
        await answer_to(hub, 1)


def call(skill: str, caller: str = "me", **arguments: Any) -> dict[str, Any]:
    return {"skill": skill, "arguments": arguments, "caller": caller}


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


async def test_what_waits_at_a_robot_keeps_out_no_stop_and_a_desk_that_has_ended_is_not_connected() -> None:
    hub = FakeHub()
    async with scene() as made:
        async with desk(made, hub) as at_work:
            await made.broker.call("follow", {"description": "a"}, caller="x")
            for id in range(1, 19):
                waits = {**call("follow", description=str(id)), "lease_wait_s": 60.0}
                hub.command(id, "/calls", within_s=200.0, body=waits)
            hub.command(19, "/robots/stop", body={"reason": "enough"})
            assert (await answer_to(hub, 19)).status == 200
            assert at_work.connected
        assert not at_work.connected


@pytest.mark.slow
async def test_no_commands_keep_out_what_makes_the_robot_stop() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        running = await made.broker.call("follow", {"description": "a"}, caller="x")
        waits = {**call("follow", description="b"), "lease_wait_s": 60.0}
        for id in range(1, 71):
            hub.command(id, "/calls", within_s=200.0, body={**waits, "arguments": {"description": str(id)}})
        answer = await answer_to(hub, 70)
        assert answer.outcome == "refused", answer
        hub.command(71, "/robots/stop", body={"reason": "enough"})
        assert (await answer_to(hub, 71)).status == 200
        hub.command(73, "/healthz", method="GET")
        assert (await answer_to(hub, 73)).status == 200
        hub.command(72, f"/calls/{running}/cancel", body={"reason": "enough"})
        assert (await answer_to(hub, 72)).outcome == "answered"


async def test_no_commands_of_the_last_hour_keep_out_what_makes_the_robot_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_notes, "MAX_NOTES", 2)
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        for id in (1, 2, 3):
            hub.command(id, "/calls", role="model", body=call("at_once", "mcp/x", value=1))
        assert [(await answer_to(hub, id)).outcome for id in (1, 2, 3)] == ["answered", "answered", "refused"]
        for id in (4, 5):
            hub.command(id, "/calls/cancel", role="model", body={"calls": [], "caller": "mcp/x", "reason": ""})
        for id in (6, 7, 8):
            hub.command(id, "/robots/stop", body={"reason": "enough"})
            assert (await answer_to(hub, id)).status == 200
        hub.command(9, "/calls", body=call("at_once", value=1))
        assert (await answer_to(hub, 9)).outcome == "refused"


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


async def test_a_command_is_carried_out_once_however_often_it_comes() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        for _ in range(3):
            hub.command(1, "/calls?wait=close", key="same", body=call("count", label="a", to=3))
            await asyncio.sleep(0.001)
        hub.cut()
        await until(lambda: hub.streams == 2)
        first = await answer_to(hub, 1)
        hub.command(2, "/calls?wait=close", key="same", body=call("count", label="a", to=3))
        again = await answer_to(hub, 2)
        assert (again.status, again.body) == (first.status, first.body)
        assert len(await made.broker.calls()) == 1


async def test_who_asks_again_while_a_command_is_carried_out_gets_an_answer_too() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(1, "/calls?wait=close", key="same", body=call("count", label="a", to=3))
        hub.command(2, "/calls?wait=close", key="same", body=call("count", label="a", to=3))
        first, again = await answer_to(hub, 1), await answer_to(hub, 2)
        assert (again.status, again.body) == (first.status, first.body)
        assert [answer.id for answer in hub.answers] == [1, 2]
        assert not CommandNotes(made.bridge.journal).owed()


async def test_a_hub_that_asks_again_without_end_is_answered_so_often_and_no_more() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        await made.broker.call("follow", {"description": "a"}, caller="x")
        for id in range(1, 2 * command_notes.MAX_OWED):
            hub.command(id, "/calls", key="k", body={**call("follow", description="b"), "lease_wait_s": 5.0})
        hub.command(1000, "/healthz", method="GET")
        await answer_to(hub, 1000)
        assert len(hub.answers) == 1
        await answer_to(hub, command_notes.MAX_OWED)
        await asyncio.sleep(10.0)
        assert len(hub.answers) == 1 + command_notes.MAX_OWED


@pytest.mark.slow
async def test_a_command_that_began_nothing_is_carried_out_when_its_key_comes_again() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        running = await made.broker.call("follow", {"description": "a"}, caller="x")
        hub.command(1, "/calls", key="same", body=call("at_once", value=3))
        assert (await answer_to(hub, 1)).status == 409
        await made.broker.cancel(running, "done")
        await closed(made.broker, running)
        hub.answers.clear()
        hub.cut()  # the hub sends the first one again: it has not heard of its answer
        assert (await answer_to(hub, 1)).status == 409, "one command has one answer"
        hub.command(2, "/calls", key="same", body=call("at_once", value=3))
        assert (await answer_to(hub, 2)).status == 201
        hub.command(3, "/calls", key="same", body=call("at_once", value=3))
        assert (await answer_to(hub, 3)).body == (await answer_to(hub, 2)).body
        hub.command(4, "/calls?wait=close&timeout_s=1", key="other", body=call("follow", description="b"))
        assert (await answer_to(hub, 4)).body["waited"] == "timed_out"
        hub.command(5, "/calls?wait=close&timeout_s=300", key="other", body=call("follow", description="b"))
        assert (await answer_to(hub, 5)).body["waited"] == "close"
        assert [view.skill for view in await made.broker.calls()] == ["follow", "at_once", "follow"]


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


async def test_what_nobody_knows_of_a_call_is_asked_again_by_its_key(tmp_path: Path) -> None:
    hub = FakeHub(held_up_s=10.0)
    async with scene(journal=tmp_path / "journal.sqlite") as made:
        assert CommandNotes(made.bridge.journal).begin("k1"), "as a bridge that was killed at this moment"
        async with desk(made, hub):
            hub.command(1, "/calls", key="k1", within_s=5.0, body=call("at_once", value=3))
            assert "asks again" in (await answer_to(hub, 1)).body["detail"]
            hub.held_up_s = 0.0
            hub.command(2, "/calls", key="k1", body=call("at_once", value=3))
            assert (await answer_to(hub, 2)).status == 201


@pytest.mark.slow
async def test_a_command_is_carried_out_once_across_a_restart(tmp_path: Path) -> None:
    hub = FakeHub()
    async with scene(journal=tmp_path / "journal.sqlite") as made:
        async with desk(made, hub):
            hub.command(1, "/calls?wait=close", within_s=100.0, body=call("follow", description="her", steps=20))
            hub.command(2, "/calls", within_s=100.0, body=call("search"))
            await answer_to(hub, 2)
            await until(lambda: len(made.broker.ledger.calls.open) == 2)
        await made.kill_bridge()
        await made.start_bridge()
        await made.offered("follow")
        hub.answers.clear()
        async with desk(made, hub):  # the hub sends both again
            assert (await answer_to(hub, 1)).body["result"] == "followed her", "it is waited for once more"
            assert (await answer_to(hub, 2)).status == 201
            assert sorted(view.skill for view in await made.broker.calls()) == ["follow", "search"]


async def test_what_has_no_such_key_is_not_done_again_after_a_restart(tmp_path: Path) -> None:
    hub = FakeHub()
    async with scene(journal=tmp_path / "journal.sqlite") as made:
        notes = CommandNotes(made.bridge.journal)
        assert notes.begin("k1"), "as a bridge that was killed at this moment"
        await made.kill_bridge()
        await made.start_bridge()
        async with desk(made, hub):
            hub.command(1, "/robots/stop", within_s=100.0)
            answer = await answer_to(hub, 1)
            assert (answer.outcome, answer.status) == ("answered", 409)
            assert "not known" in answer.body["detail"]
            assert not made.broker.stops.stopped().stops


@pytest.mark.slow
async def test_answers_are_sent_until_the_hub_has_them(tmp_path: Path) -> None:
    hub = FakeHub()
    async with scene(journal=tmp_path / "journal.sqlite") as made:
        async with desk(made, hub):
            hub.before = _down
            hub.command(1, "/calls?wait=close", body=call("at_once", value=3))
            await asyncio.sleep(60.0)
            assert not hub.answers
        await made.kill_bridge()
        await made.start_bridge()
        hub.before = _up
        hub.forget()
        async with desk(made, hub):
            assert (await answer_to(hub, 1)).body["result"] == 3
            await asyncio.sleep(60.0)
        assert [answer.id for answer in hub.answers] == [1], "and not any more then"
        assert not CommandNotes(made.bridge.journal).owed()


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


@pytest.mark.parametrize(
    "path", ["/mcp", "/tool_streams", "/monitor", "/metrics", "/", "//calls", "/calls/../settings"]
)
async def test_nothing_else_is_reached_through_the_door(path: str) -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        hub.command(1, path, method="GET")
        assert (await answer_to(hub, 1)).outcome == "refused"


async def test_what_a_bridge_says_at_length_is_not_sent() -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        for _ in range(40):
            call_id = await made.broker.call("count", {"label": "x" * 2000, "to": 1}, caller="me")
            await closed(made.broker, call_id)
        hub.command(1, "/calls?limit=1000", method="GET")
        answer = await answer_to(hub, 1)
        assert (answer.outcome, answer.status) == ("answered", 413)


async def test_an_answer_that_fits_without_what_is_around_it_only_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = FakeHub()
    async with scene() as made, desk(made, hub):
        call_id = await made.broker.call("count", {"label": "x" * 1000, "to": 1}, caller="me")
        await closed(made.broker, call_id)
        path = f"/calls/{call_id}"
        hub.command(1, path, method="GET")
        whole = await answer_to(hub, 1)
        most = len(whole.model_dump_json())
        for id, bytes_more, status in ((2, 16, 200), (3, 15, 413)):
            for of in ("commands", "door"):
                monkeypatch.setattr(f"dimos_streams.bridge.fleet.{of}.MAX_ANSWER_BYTES", most + bytes_more)
            hub.command(id, path, method="GET")
            answer = await answer_to(hub, id)
            assert (answer.outcome, answer.status) == ("answered", status)
        assert f"has {most} bytes, a hub takes {most + 15}; ask for less" in answer.body["detail"]


async def test_calls_begun_by_a_hub_go_on_when_it_has_gone() -> None:
    hub = FakeHub()
    async with scene() as made:
        async with desk(made, hub):
            hub.command(1, "/calls?wait=close", body=call("follow", description="her", steps=20))
            await until(lambda: made.broker.ledger.calls.open)
        (running,) = await made.broker.calls()
        assert (await closed(made.broker, running.call_id)).result == "followed her"


def _down() -> None:
    raise HubUnreachableError("it can't be reached: Connection refused")


def _up() -> None:
    pass
