"""No number of commands keeps out what makes a robot stop, and no answer is larger than a hub takes."""

from __future__ import annotations

import pytest

from dimos_streams.bridge.fleet import command_notes
from tests.bridge.fleet.desk import answer_to, call, desk
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.scene import closed, scene

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


async def test_an_answer_that_makes_the_hub_fail_holds_no_other_up() -> None:
    hub = FakeHub(fails_on={1})
    async with scene() as made, desk(made, hub):
        for id in (1, 2, 3):
            hub.command(id, "/healthz", method="GET", body=None)
        await answer_to(hub, 2)
        await answer_to(hub, 3)
        hub.fails_on.clear()
        await answer_to(hub, 1)


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
