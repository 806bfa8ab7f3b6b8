"""Which events and heartbeats the bridge believes of calls that it has just heard of, or hears little of."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import pytest

from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Query
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.family import child_id
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS
from dimos_streams.tool_stream.wire.packing import pack_event
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from tests.bridge.calls.families import Composer
from tests.bridge.scene import Scene, Worker, answered, closed, event, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("F6")]


async def heard(world: Scene, given: ToolEvent) -> bool:
    """Whether an event on the bus makes its call known, or brings it on."""
    before = world.broker.ledger.calls.get(given.call_id)
    seq = 0 if before is None else before.last_seq
    world.inner.publish(EVENTS, pack_event(given))
    await asyncio.sleep(0.5)
    after = world.broker.ledger.calls.get(given.call_id)
    return after is not None and after.last_seq > seq


def instance_of(world: Scene, module: str) -> str:
    view = world.broker.directory.module(module)
    assert view is not None
    return view.instance


async def test_a_child_of_a_call_here_is_opened_by_who_can_run_it_and_nobody_else() -> None:
    async with scene() as world:
        parent = await world.broker.call("patrol", {}, caller="you")
        given = replace(event(1, "open", call_id=child_id(parent, 1)), instance="a stranger")
        assert not await heard(world, given)
        own = replace(given, instance=instance_of(world, "worker"))
        assert not await heard(world, replace(own, skill="fly"))
        assert await heard(world, own)


async def test_a_child_of_a_call_that_was_begun_elsewhere_is_heard_of_though_nobody_knows_its_module() -> None:
    async with scene() as world:
        assert await heard(world, replace(event(1, "open", call_id="elsewhere"), instance="a stranger"))
        child = replace(event(1, "open", call_id="elsewhere~1"), module="stranger", instance="a stranger")
        assert await heard(world, child)


async def test_a_call_that_was_asked_of_one_module_is_opened_by_no_other() -> None:
    async with scene() as world:
        await world.add(Worker(name="other"))
        await until(lambda: world.broker.directory.module("other") is not None)
        world.processes[1].bus.partitioned = True
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="you")
        call = world.broker.ledger.calls.get(call_id)
        assert call is not None
        other = {"worker": "other", "other": "worker"}[call.module]
        taken = replace(event(1, "open", call_id=call_id), module=other, instance=instance_of(world, other))
        assert not await heard(world, taken)


@pytest.mark.parametrize(
    ("skill", "arguments", "kinds"),
    [("nothing", "", ["open", "close", "close"]), ("count", '{"label": "n", "to": 0}', ["close"])],
)
async def test_who_asks_for_a_call_once_more_hears_of_its_end_in_its_own_name(
    skill: str, arguments: str, kinds: list[str]
) -> None:
    async with scene() as world:
        await world.add(Composer(name="composer"))
        await world.offered("use")
        parent = await world.broker.call(
            "leave", {"skill": "count", "arguments": {"label": "n", "to": 10_000}, "ends": "hangs"}, caller="you"
        )
        await until(lambda: (call := world.broker.ledger.calls.get(parent)) and call.instance)
        on_bus: list[ToolEvent] = []
        world.inner.subscribe(EVENTS, lambda _, data: on_bus.append(unpack_event(data)))
        child = child_id(parent, 7)
        request = encode(SkillCall(call_id=child, skill=skill, parent=parent, arguments_json=arguments))
        for _ in range(2):
            world.inner.publish(CALLS, request)
            await until(lambda: world.broker.ledger.calls.get(child))
            await closed(world.broker, child)
            await asyncio.sleep(0.2)
        own = instance_of(world, "composer")
        assert [each.type for each in on_bus if each.call_id == child and each.instance == own] == kinds


async def test_a_request_with_more_arguments_than_an_event_can_have_is_refused_without_them() -> None:
    async with scene() as world:
        await answered(
            world.broker, parent := await world.broker.call("follow", {"description": "ann"}, caller="you")
        )
        large = '{"description": "' + "x" * 45_000 + '"}'
        request = SkillCall(call_id=child_id(parent, 1), skill="follow", parent=parent, arguments_json=large)
        world.inner.publish(CALLS, encode(request))
        await until(lambda: world.broker.ledger.calls.get(request.call_id))
        refused = await closed(world.broker, request.call_id)
        assert (refused.outcome, refused.arguments) == (Outcome.REJECTED, {})


@pytest.mark.parametrize("requested", [True, False])
async def test_every_event_of_a_call_is_in_the_names_that_it_was_begun_with(requested: bool) -> None:
    with contextlib.closing(Journal()) as journal:
        journal.open()
        ledger = Ledger(JournalBroadcast(journal))
        if requested:
            ledger.begin(CallState(call_id="c1", skill="follow", module="worker", caller="agent"))
        other = replace(event(2, caller="other", data={"at": 1}), skill="drive", module="another")
        close = event(4, "close", caller="other")
        ledger.enter([event(1, "open", caller="other" if requested else "agent")])
        ledger.enter([other])
        ledger.enter([replace(other, seq=3, type="update", text="hello"), close])
        kept = [entry.event for entry in journal.read(Query(0, caller="agent"), 10, 1 << 20).entries]
        (call,) = ledger.calls
    assert [(each.seq, each.module, each.skill) for each in kept] == [(n, "worker", "follow") for n in (1, 2, 3, 4)]
    assert (call.caller, call.answer, call.outcome) == ("agent", "hello", Outcome.COMPLETED)


async def test_a_close_without_an_outcome_is_given_up_and_frees_what_its_call_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene() as world:
        bus = world.processes[-1].bus
        publish = bus.publish
        monkeypatch.setattr(
            bus, "publish", lambda channel, data: publish(channel, data.replace(b'"outcome":', b'"outkome":'))
        )
        call_id = await world.broker.call("at_once", {"value": 1}, caller="agent")
        call = await closed(world.broker, call_id)
        assert (call.outcome, call.last_seq, world.broker.ledger.leases.holders()) == (Outcome.LOST, 3, {})
