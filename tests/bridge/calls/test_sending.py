"""Modules hear what they are to do with their calls until they do it, and no more often than that takes."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.sending.call_sender import MOST_CANCELS
from dimos_streams.bridge.calls.sending.loss_reports import LossReports
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.repeat import Repeat
from dimos_streams.bus import Bus
from dimos_streams.errors import CallRejectedError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import SkillCancel
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS
from tests.bridge.calls.driven_robots import Stubborn
from tests.bridge.scene import answered, closed, collect, scene
from tests.helpers import until

pytestmark = pytest.mark.virtual_time


def heard_on(bus: Bus) -> list[SkillCancel]:
    """The words about the ends of calls that are on a bus from now on."""
    heard: list[SkillCancel] = []
    bus.subscribe(CANCELS, lambda channel, data: heard.append(decode(SkillCancel, data, channel=channel)))
    return heard


async def test_a_call_that_does_not_end_is_asked_to_so_often_and_lingers_since_it_was_asked_first() -> None:
    async with scene(worker=False) as world:
        broker, arm, heard = world.broker, Stubborn(name="arm"), heard_on(world.inner)
        await world.add(arm)
        await world.offered("wave")
        await answered(broker, waving := await broker.call("wave", {}, caller="you"))
        asked_at = clock.utime()
        await broker.cancel(waving, "enough")
        await asyncio.sleep(12.0)
        assert len(heard) == MOST_CANCELS
        await broker.cancel(waving, "really enough")
        await asyncio.sleep(12.0)
        assert [each.reason for each in heard] == ["enough"] * 2 * MOST_CANCELS
        (lingering,) = (await broker.stops.stop_robot("", "")).calls.going_on
        assert lingering.since_utime == asked_at
        arm.enough.set()


def test_what_is_said_again_comes_at_longer_and_longer_pauses() -> None:
    repeat, times = Repeat(0.0), list[float]()
    for _ in range(7):
        times.append(repeat.at)
        assert not repeat.take_turn(repeat.at - 0.001)
        assert repeat.take_turn(repeat.at)
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert pauses == pytest.approx([0.1, 0.15, 0.225, 0.3375, 0.5, 0.5])


async def test_who_asks_again_is_heard_by_a_module_that_had_heard_nothing_for_long() -> None:
    async with scene() as world:
        broker = world.broker
        await answered(broker, call := await broker.call("follow", {"description": "ann"}, caller="you"))
        world.bridge_bus.faults = Faults(loss=1.0, affects=lambda channel: channel == CANCELS)
        await broker.cancel(call, "enough")
        await asyncio.sleep(30.0)
        world.bridge_bus.faults = Faults()
        await broker.cancel(call, "enough")
        assert (await closed(broker, call)).outcome is Outcome.CANCELLED


async def test_who_replaces_a_call_again_is_heard_by_a_module_that_had_heard_nothing_for_long() -> None:
    async with scene() as world:
        broker = world.broker
        await answered(broker, call := await broker.call("follow", {"description": "ann"}, caller="you"))
        world.bridge_bus.faults = Faults(loss=1.0, affects=lambda channel: channel == CANCELS)
        with pytest.raises(CallRejectedError, match="did not end within"):
            await broker.call("follow", {"description": "bob"}, caller="you", on_duplicate="replace")
        world.bridge_bus.faults = Faults()
        await broker.call("follow", {"description": "bob"}, caller="you", on_duplicate="replace")
        assert (await closed(broker, call)).outcome is Outcome.CANCELLED


async def test_a_module_hears_so_often_that_its_call_was_lost_and_again_from_who_ends_it() -> None:
    async with scene() as world:
        await answered(world.broker, call := await world.broker.call("follow", {"description": "ann"}, caller="you"))
        heard = heard_on(world.inner)
        world.processes[-1].bus.partitioned = True
        assert (await closed(world.broker, call)).outcome is Outcome.LOST
        await asyncio.sleep(30.0)
        assert [(each.call_id, each.outcome) for each in heard] == [(call, "lost")] * MOST_CANCELS
        await world.broker.cancel(call, "enough")
        await until(lambda: len(heard) > MOST_CANCELS)
        assert (heard[-1].call_id, heard[-1].outcome) == (call, "lost")


async def test_a_module_has_the_whole_time_to_begin_a_call_that_has_waited() -> None:
    async with scene() as world:
        broker = world.broker
        await answered(broker, first := await broker.call("follow", {"description": "ann"}, caller="you"))
        waiting = asyncio.create_task(broker.call("at_once", {"value": 7}, caller="you", lease_wait_s=60.0))
        await asyncio.sleep(5.0)
        world.bridge_bus.faults = Faults(loss=1.0, affects=lambda channel: channel == CALLS)
        await broker.cancel(first, "enough")
        second = await waiting
        await asyncio.sleep(1.0)
        world.bridge_bus.faults = Faults()
        assert (await closed(broker, second)).result == 7


async def test_forged_calls_make_no_flood_of_words_about_their_ends() -> None:
    async with scene(worker=False) as world:
        heard, reports = heard_on(world.inner), LossReports(world.inner, MOST_CANCELS)
        for number in range(100):
            call = CallState(call_id=f"c{number}", skill="follow", module="worker", caller="you")
            call.unsolicited = number > 0
            reports.report_once(call)
        await asyncio.sleep(0)
        assert len(heard) <= 11
        reports.report_once(CallState(call_id="own", skill="follow", module="worker", caller="you"))
        await until(lambda: heard[-1].call_id == "own")


@pytest.mark.parametrize(("skill", "arguments"), [("follow", {"description": "ann"}), ("patrol", {})])
async def test_a_call_that_was_asked_to_end_while_its_module_was_cut_off_is_asked_again_when_that_is_back(
    skill: str, arguments: dict[str, str]
) -> None:
    """Whether an event is heard first or, of a skill that says nothing, a heartbeat."""
    async with scene() as world:
        broker, process = world.broker, world.processes[-1]
        call = await broker.call(skill, arguments, caller="you", on_loss="continue")
        await asyncio.sleep(1.0)
        process.bus.partitioned = True
        asked_at = clock.utime()
        await broker.cancel(call, "enough")
        await asyncio.sleep(30.0)
        assert (await broker.view(call)).state == "open"
        assert [each.since_utime for each in broker.cancels.lingering()] == [asked_at]
        process.bus.partitioned = False
        ended = await closed(broker, call)
        assert (ended.outcome, ended.text) == (Outcome.CANCELLED, "enough")


async def test_what_its_caller_wants_where_a_link_is_cut_holds_for_what_a_call_begins() -> None:
    async with scene() as world:
        arguments = {"then": "search", "arguments": {}}
        begun = [
            (
                await closed(world.broker, await world.broker.call("chain", arguments, caller="you", on_loss=on_loss))
            ).result
            for on_loss in ("continue", "stop")
        ]
        assert [(await world.broker.view(call_id)).on_loss for call_id in begun] == ["continue", "stop"]


async def test_of_a_call_that_was_lost_unheard_nobody_claims_that_it_did_not_begin() -> None:
    async with scene() as world:
        process = world.processes[-1]
        process.bus.faults = Faults(loss=1.0)  # it hears, and nobody hears it
        call = await world.broker.call("follow", {"description": "ann"}, caller="you")
        await until(lambda: process.modules["worker"].running == [call])  # type: ignore[attr-defined]
        assert (await closed(world.broker, call)).outcome is Outcome.LOST
        opening, _ = await collect(world.broker, call_id=call)
        assert not opening.data["refused"]


async def test_a_module_that_does_not_begin_a_call_is_asked_for_it_at_longer_and_longer_pauses() -> None:
    async with scene() as world:
        world.processes[1].bus.partitioned = True
        asked: list[bytes] = []
        world.inner.subscribe(CALLS, lambda _, data: asked.append(data))
        call = await world.broker.call("follow", {"description": "ann"}, caller="you")
        assert (await closed(world.broker, call)).outcome is Outcome.LOST
        assert 4 <= len(asked) <= 7
