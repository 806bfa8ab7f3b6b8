"""A command is carried out once, and answered until the hub has the answer, also across restarts of the bridge."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams.bridge.fleet import command_notes
from dimos_streams.bridge.fleet.command_notes import CommandNotes
from dimos_streams.bridge.fleet.hub_requests import HubUnreachableError
from tests.bridge.fleet.desk import answer_to, call, desk
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.scene import closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


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


def _down() -> None:
    raise HubUnreachableError("it can't be reached: Connection refused")


def _up() -> None:
    pass
