"""Calls that are asked for, and given up or ended, before their module hears of them: they do not begin."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import SkillCall, SkillCancel, ToolStreamRequest
from dimos_streams.module import Module
from dimos_streams.skill import skill
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.family import child_id
from dimos_streams.tool_stream.liveness.attention import CATCHES_UP_S
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, PENDING, REQUESTS
from tests.bridge.calls.test_authority import Legs
from tests.bridge.calls.test_names import Reviewer
from tests.bridge.scene import Worker, closed, scene
from tests.helpers import until

pytestmark = pytest.mark.virtual_time


class Arm(Module):
    """An arm that waves."""

    @skill(resources={"arm"})
    async def wave(self) -> None:
        """Wave."""


def stand_still(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have every process find that it has not run for a while."""
    before = clock.steady
    monkeypatch.setattr(clock, "steady", lambda: before() + seconds)


async def test_a_call_that_was_given_up_does_not_begin_when_its_module_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene() as world:
        requests: list[bytes] = []
        world.inner.subscribe(CALLS, lambda _, data: requests.append(data))
        process = world.processes[-1]
        worker = process.modules["worker"]
        assert isinstance(worker, Worker)
        process.bus.partitioned = True
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="you")
        assert (await closed(world.broker, call_id)).outcome == "lost"
        await asyncio.sleep(0.05)
        process.bus.partitioned = False
        stand_still(monkeypatch, 4.0)
        for request in requests:  # which have waited for it, while what else came has got lost
            world.inner.publish(CALLS, request)
        await asyncio.sleep(3.0)
        assert (worker.most, (await world.broker.view(call_id)).outcome) == (0, "lost")
        wanted = await world.broker.call("at_once", {"value": 7}, caller="you")
        assert (await closed(world.broker, wanted)).result == 7


async def test_a_call_that_runs_is_not_begun_by_its_modules_successor_when_it_is_asked_for_again() -> None:
    """As a skill asks that has not heard that its child has begun."""
    async with scene() as world:
        parent = await world.broker.call("follow", {"description": "ann"}, caller="you")
        child = SkillCall(call_id=f"{parent}~1", skill="search", parent=parent, arguments_json="{}")
        world.inner.publish(CALLS, encode(child))
        await until(
            lambda: ("search", "open") in {(call.skill, call.state) for call in world.broker.ledger.calls.open}
        )
        world.processes[-1].bus.partitioned = True
        successor = await world.add(Worker(name="worker"))
        await asyncio.sleep(0.1)
        world.inner.publish(CALLS, encode(child))
        assert (await closed(world.broker, child.call_id)).outcome == "lost"
        assert not successor.host._skills.publisher.knows(child.call_id)


async def test_a_bridge_that_has_just_begun_passes_no_request_on_before_it_knows_who_would_begin_the_call(
    tmp_path: Path,
) -> None:
    """A dead instance may have begun it: its successor hears the bridge before that hears of it."""
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        parent = await world.broker.call("patrol", {}, caller="you")
        arm = await world.add(Arm(name="arm"))
        await world.offered("wave")
        arm.bus.faults = Faults(loss=1.0)
        child = SkillCall(call_id=f"{parent}~1", skill="wave", parent=parent, arguments_json="{}")
        world.inner.publish(CALLS, encode(child))
        await until(lambda: "wave" in {call.skill for call in world.broker.ledger.calls.open})
        await world.kill_bridge()
        arm.bus.partitioned = True
        successor = await world.add(Arm(name="arm"))
        successor.bus.faults = Faults(loss=1.0)
        await asyncio.sleep(0.1)
        await world.start_bridge()
        await asyncio.sleep(0.05)
        world.inner.publish(CALLS, encode(child))
        await asyncio.sleep(0.3)
        successor.bus.faults = Faults()
        assert (await closed(world.broker, child.call_id)).outcome == "lost"
        await asyncio.sleep(1.0)
        assert successor.host._skills.outcome(child.call_id) is Outcome.LOST, "it was told, and has not begun"


async def test_a_call_that_is_wanted_still_begins_a_moment_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as world:
        stand_still(monkeypatch, 2.0)
        began = clock.monotonic()
        call_id = await world.broker.call("at_once", {"value": 7}, caller="you")
        assert (await closed(world.broker, call_id)).result == 7
        assert CATCHES_UP_S < clock.monotonic() - began < 2.0


async def test_a_call_that_was_ended_before_its_module_heard_of_it_does_not_begin() -> None:
    async with scene() as world:
        process = world.processes[-1]
        worker = process.modules["worker"]
        assert isinstance(worker, Worker)
        process.bus.partitioned = True
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="you")
        await asyncio.sleep(0.3)
        await world.broker.cancel(call_id, "enough")
        await asyncio.sleep(0.7)
        process.bus.partitioned = False
        view = await closed(world.broker, call_id)
        assert (view.outcome, view.text, worker.most) == ("cancelled", "enough", 0)


async def test_a_skill_s_request_for_a_call_that_has_waited_for_a_bridge_that_stood_still_is_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene() as world:
        request = encode(SkillCall(call_id="late", skill="patrol", caller="you"))
        stand_still(monkeypatch, 2.0)
        world.inner.publish(CALLS, request)
        await asyncio.sleep(CATCHES_UP_S + 0.1)
        assert world.broker.ledger.calls.get("late") is None
        world.inner.publish(CALLS, request)
        await until(lambda: world.broker.ledger.calls.get("late") is not None)
        assert (await closed(world.broker, "late")).outcome == "rejected", "nobody knows who asks"


async def test_a_request_that_was_withdrawn_while_it_waited_begins_nothing_when_it_comes_again() -> None:
    async with scene() as world:
        broker = world.broker
        parent = await broker.call("patrol", {}, caller="you")
        child = f"{parent}~1"
        await world.add(Legs(name="legs"))
        await world.offered("turn")
        await broker.call("turn", {}, caller="you")
        request = encode(SkillCall(call_id=child, skill="turn", parent=parent))
        world.inner.publish(CALLS, request)
        await until(lambda: broker.ledger.waiting)
        heard: list[ToolStreamRequest] = []
        world.inner.subscribe(
            REQUESTS, lambda channel, data: heard.append(decode(ToolStreamRequest, data, channel=channel))
        )
        world.inner.publish(CALLS, request)
        await until(lambda: (PENDING, child) in [(each.kind, each.call_id) for each in heard])
        for reason in ("not needed", "really not"):
            world.inner.publish(CANCELS, encode(SkillCancel(call_id=child, reason=reason)))
        await until(lambda: broker.ledger.calls.get(child))
        world.inner.publish(CALLS, request)
        await asyncio.sleep(15.0)
        refused = await broker.view(child)
        assert (refused.outcome, refused.text) == ("rejected", "withdrawn before it began: not needed")


async def test_a_child_that_is_heard_of_after_its_parent_has_completed_is_ended() -> None:
    async with scene() as world:
        parent = await world.broker.call("count", {"label": "n", "to": 1}, caller="you")
        assert (await closed(world.broker, parent)).outcome == "completed"
        child = SkillCall(call_id=f"{parent}~1", module="worker", skill="patrol", parent=parent)
        world.inner.publish(CALLS, encode(child))
        await until(lambda: world.broker.ledger.calls.get(child.call_id))
        ended = await closed(world.broker, child.call_id)
        assert (ended.outcome, "to which this one belongs, has ended: completed" in ended.text) == ("cancelled", True)


@pytest.mark.parametrize("asking", ["nobody", "an agent's call"])
async def test_so_many_requests_wait_for_whom_they_are_for_and_no_more(asking: str) -> None:
    async with scene() as world:
        world.agents = frozenset({"agent"})
        await world.kill_bridge()
        await world.start_bridge()
        await world.offered("patrol")
        broker = world.broker
        parent = "nobody"
        if asking != "nobody":
            parent = await broker.call("patrol", {}, caller="agent", idempotency_key="agent/1")
        for number in range(120):
            child = child_id(parent, number)
            world.inner.publish(CALLS, encode(SkillCall(call_id=child, skill="at_once", parent=parent)))
        await asyncio.sleep(3.0)
        known = [child for number in range(120) if broker.ledger.calls.get(child := child_id(parent, number))]
        assert len(known) == (20 if asking == "nobody" else 100)


async def test_what_a_skill_asks_for_an_agent_waits_until_a_bridge_that_has_just_begun_knows_the_agent(
    tmp_path: Path,
) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        agent = await world.add(Reviewer(name="agent"))
        await world.offered("review_call")
        parent = await world.broker.call("patrol", {}, caller="agent", idempotency_key="agent/1")
        await until(lambda: (call := world.broker.ledger.calls.get(parent)) and call.instance)
        await world.kill_bridge()
        agent.bus.partitioned = True
        await world.start_bridge()
        child = child_id(parent, 1)
        request = SkillCall(call_id=child, skill="at_once", parent=parent, arguments_json='{"value": 1}')
        world.inner.publish(CALLS, encode(request))
        await asyncio.sleep(0.3)
        agent.bus.partitioned = False
        await until(lambda: world.broker.ledger.calls.get(child))
        refused = await closed(world.broker, child)
        assert "does not look at it any more" in refused.text, "it was asked, and this one looks at nothing"
