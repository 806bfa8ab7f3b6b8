"""The broker: the form of calls, their views, and calls that skills begin."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.remembered_calls import KEEP_CLOSED_BYTES
from dimos_streams.bridge.mcp.calls import BrokerCalls
from dimos_streams.bridge.mcp.sessions import Session
from dimos_streams.bridge.mcp.tools import McpTools
from dimos_streams.errors import (
    CallRejectedError,
    KeyUsedError,
    SkillArgumentError,
    SkillError,
    UnknownCallError,
    UnknownSkillError,
)
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import RunContext
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS, STATUS
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from tests.bridge.monitor.toy_agent import agents
from tests.bridge.scene import Scene, Worker, answered, closed, collect, event, scene
from tests.helpers import run_virtual, until


@pytest.mark.feature("A1")
@pytest.mark.virtual_time
async def test_updates_of_two_calls_of_one_skill_never_mix() -> None:
    async with scene() as world:
        broker = world.broker
        ids = {label: await broker.call("count", {"label": label, "to": 50}, caller="agent") for label in "ab"}
        for label, call_id in ids.items():
            assert (await answered(broker, call_id)).answer == f"{label} 1", "answered while it goes on"
            view = await closed(broker, call_id)
            assert (view.outcome, view.result) == (Outcome.COMPLETED, label)
            events = await collect(broker, call_id=call_id)
            assert [event.seq for event in events] == list(range(1, 53))
            assert [event.type for event in events] == ["open", *["update"] * 50, "close"]
            assert [event.text for event in events[1:-1]] == [f"{label} {n}" for n in range(1, 51)]


@pytest.mark.virtual_time
async def test_calls_and_cancels_get_through_a_lossy_bus_once() -> None:
    async with scene(faults=Faults(loss=0.3, duplication=0.2, delay_s=(0.0, 0.02))) as world:
        broker = world.broker
        worker = world.processes[1].modules["worker"]
        assert isinstance(worker, Worker)
        for number in range(20):
            call_id = await broker.call("follow", {"description": f"p{number}"}, caller="agent")
            await answered(broker, call_id)
            await broker.cancel(call_id, "next")
            await broker.cancel(call_id, "next")
            view = await closed(broker, call_id)
            assert (view.outcome, view.text) == (Outcome.CANCELLED, "next")
            events = await collect(broker, call_id=call_id)
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert worker.most == 1
        await broker.cancel(call_id, "again")
        with pytest.raises(UnknownCallError):
            await broker.cancel("nobody", "")


@pytest.mark.virtual_time
async def test_a_call_at_a_bridge_that_has_heard_nobody_yet_begins_and_an_unknown_skill_is_named_soon() -> None:
    async with scene() as world:
        await world.kill_bridge()
        await world.start_bridge()
        assert [skill for skill in await world.broker.skills() if skill.module == "worker"] == []
        began = clock.monotonic()
        with pytest.raises(UnknownSkillError, match="did you mean 'follow'"):
            await world.broker.call("folow", {}, caller="operator")
        assert 0.4 < clock.monotonic() - began < 0.6
        await world.kill_bridge()
        await world.start_bridge()
        call_id = await world.broker.call("at_once", {"value": 1}, caller="operator")
        assert (await closed(world.broker, call_id)).outcome is Outcome.COMPLETED
        await world.kill_bridge()
        await world.start_bridge()
        tools = McpTools(BrokerCalls(world.broker), world.broker.ledger.broadcast)
        call_id, _ = await tools.begin(Session("", "mcp/c"), 1, "at_once", {"value": 1})
        assert (await closed(world.broker, call_id)).outcome is Outcome.COMPLETED


@pytest.mark.virtual_time
async def test_what_ends_all_calls_ends_those_that_wait_for_their_skill_to_be_heard() -> None:
    async with scene() as world:
        await world.kill_bridge()
        await world.start_bridge()
        calling = asyncio.create_task(world.broker.call("at_once", {"value": 1}, caller="operator"))
        saying = asyncio.create_task(world.broker.agents(""))
        await asyncio.sleep(0)
        await world.broker.cancels.cancel_all("", "")
        for waiting in (calling, saying):
            with pytest.raises(CallRejectedError, match="all calls were ended since it was asked for"):
                await waiting


@pytest.mark.virtual_time
async def test_a_bridge_that_has_heard_nobody_yet_waits_for_the_agents_that_an_order_may_mean() -> None:
    async with agents("robot1/agent", "robot2/agent") as (world, _):
        for wanted, found in (("robot2/agent", 1), ("", 2)):
            await world.kill_bridge()
            await world.start_bridge()
            assert len(await world.broker.agents(wanted)) >= found
        began = clock.monotonic()
        assert len(await world.broker.agents("robot1")) == 2
        assert clock.monotonic() == began, "nobody waits for those who are known"


@pytest.mark.virtual_time
async def test_the_form_of_calls_is_checked_before_anything_happens() -> None:
    async with scene() as world:
        broker = world.broker
        with pytest.raises(UnknownSkillError, match="did you mean 'follow'"):
            await broker.call("folow", {}, caller="agent")
        with pytest.raises(SkillArgumentError) as bad:
            await broker.call("follow", {"steps": "many", "speed": 1}, caller="agent")
        assert sorted(bad.value.problems) == ["description", "speed", "steps"]
        with pytest.raises(SkillError):
            await broker.call("follow", {"description": "x" * MAX_ARGUMENTS}, caller="agent")
        assert await broker.calls() == []
        assert await broker.offset() == 0
        repaired = await broker.call("follow", {"description": "\ud800"}, caller="agent")
        assert (await broker.view(repaired)).arguments == {"description": "\ufffd"}


@pytest.mark.virtual_time
async def test_the_view_of_a_call_follows_its_life() -> None:
    async with scene() as world:
        broker = world.broker
        call_id = await broker.call("follow", {"description": "ann", "steps": 2}, caller="agent")
        view = await broker.view(call_id)
        assert (view.state, view.module, view.resources, view.last_seq) == ("requested", "worker", ("base",), 0)
        view = await answered(broker, call_id)
        assert (view.state, view.answer, view.outcome) == ("open", "following ann", None)
        view = await closed(broker, call_id)
        assert (view.state, view.answer, view.text) == ("closed", "following ann", "followed ann")
        assert (view.result, view.arguments) == ("followed ann", {"description": "ann", "steps": 2})
        assert view.closed_utime is not None
        assert not await broker.wait(await broker.call("patrol", {}, caller="a"), "close", 0.5)


@pytest.mark.virtual_time
@pytest.mark.parametrize("ahead_s", [432_000, -432_000])
async def test_a_call_takes_as_long_as_it_does_whatever_the_clock_of_its_machine(
    ahead_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = CallState.apply

    def by_another_clock(call: CallState, event: ToolEvent) -> None:
        apply(call, replace(event, utime=event.utime + ahead_s * 1_000_000))

    monkeypatch.setattr(CallState, "apply", by_another_clock)
    async with scene() as world:
        view = await closed(
            world.broker, await world.broker.call("follow", {"description": "a", "steps": 2}, caller="b")
        )
        assert view.closed_utime is not None
        assert 0 < view.closed_utime - view.requested_utime < 10_000_000


@pytest.mark.virtual_time
async def test_a_skill_begins_another_one() -> None:
    async with scene() as world:
        broker = world.broker
        parent = await broker.call(
            "chain", {"then": "follow", "arguments": {"description": "ann", "steps": 1}}, caller="agent"
        )
        child = (await closed(broker, parent)).result
        view = await closed(broker, child)
        assert (view.parent, view.caller, view.outcome) == (parent, "agent", Outcome.COMPLETED)
        assert [event.text for event in await collect(broker, caller="agent", call_id=child)][-1] == "followed ann"

        busy = await broker.call("follow", {"description": "ann"}, caller="agent")
        for then, arguments, why in (
            ("at_once", {"value": 1}, f": call '{busy}'"),
            ("at_onec", {"value": 1}, "did you mean 'at_once'"),
            ("at_once", {}, "value: is missing"),
        ):
            parent = await broker.call("chain", {"then": then, "arguments": arguments}, caller="agent")
            view = await closed(broker, parent)
            assert view.outcome is Outcome.FAILED
            assert why in view.text
            refused = next(call for call in await broker.calls() if call.parent == parent)
            assert refused.outcome is Outcome.REJECTED
            events = await collect(broker, call_id=refused.call_id)
            assert [(event.seq, event.type) for event in events] == [(1, "open"), (2, "close")]
            assert why in events[-1].text


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_closed_calls_with_large_results_are_remembered_by_the_journal_alone() -> None:
    async with scene() as world:
        ledger, large = world.broker.ledger, {"outcome": "completed", "result": "x" * 500_000}
        ids = [f"c{number}" for number in range(20)]
        for call_id in ids:
            ledger.enter([event(1, "open", call_id=call_id), event(2, "close", call_id=call_id, data=large)])
        # The result, and the close that says the same again.
        assert 0 < sum(2 * len(call.result) for call in ledger.calls) <= KEEP_CLOSED_BYTES
        assert [len((await world.broker.view(call_id)).result) for call_id in ids] == [500_000] * 20


@pytest.mark.virtual_time
async def test_closed_calls_that_somebody_else_began_push_out_none_of_the_others() -> None:
    async with scene() as world:
        ledger, large = world.broker.ledger, {"outcome": "completed", "result": "x" * 40_000}
        own = await world.broker.call("at_once", {"value": 1}, caller="test")
        await closed(world.broker, own)
        for number in range(100):
            call_id = f"forged{number}"
            ledger.enter([event(1, "open", call_id=call_id), event(2, "close", call_id=call_id, data=large)])
        remembered = {call.call_id for call in ledger.calls}
        assert own in remembered
        assert "forged99" in remembered
        assert 20 < len(remembered) < 30, "1 MB"


@pytest.mark.virtual_time
async def test_a_skill_that_asks_again_is_answered_again_and_begins_nothing_twice() -> None:
    async with scene() as world:
        parent = await world.broker.call("follow", {"description": "ann"}, caller="you")
        await answered(world.broker, parent)
        asks = SkillCall(call_id="child", skill="patrol", parent=parent, arguments_json="{}")
        sent: list[tuple[str, str]] = []

        def hear(channel: str, data: bytes) -> None:
            if channel == CALLS and (message := decode(SkillCall, data, channel=channel)).module:
                sent.append(("call", message.call_id))
            elif channel == EVENTS:
                unpacked = unpack_event(data, channel)
                sent.append((unpacked.type, unpacked.call_id))

        async def again() -> list[tuple[str, str]]:
            sent.clear()
            world.inner.publish(CALLS, encode(asks))
            await asyncio.sleep(0.05)
            return [what for what in sent if what[1] == "child"]

        for channel in (CALLS, EVENTS):
            world.inner.subscribe(channel, hear)
        world.inner.publish(CALLS, encode(asks))
        await until(lambda: ("open", "child") in sent)
        assert await again() == [("call", "child"), ("open", "child")], "one of the two may not have heard"
        await world.broker.cancel("child", "enough")
        assert (await closed(world.broker, "child")).outcome is Outcome.CANCELLED
        await asyncio.sleep(5)
        assert await again() == [("close", "child")]


@pytest.mark.slow
@pytest.mark.feature("A5")
@pytest.mark.virtual_time
async def test_garbage_on_the_bus_stops_nothing() -> None:
    async with scene() as world:
        broker, source = world.broker, random.Random(1)
        call_id = await broker.call("count", {"label": "a", "to": 200}, caller="agent")
        good = encode(SkillCall(call_id="x" * 300, skill="follow", arguments_json='{"description": "x"}'))
        for _ in range(10_000):
            data = bytearray(good if source.random() < 0.5 else source.randbytes(source.randrange(80)))
            for _ in range(source.randrange(4)):
                if data:
                    data[source.randrange(len(data))] = source.randrange(256)
            world.inner.publish(source.choice([CALLS, EVENTS, STATUS, "/skill_cancels#x"]), bytes(data))
            if source.random() < 0.01:
                await asyncio.sleep(0.01)
        assert (await closed(broker, call_id)).outcome is Outcome.COMPLETED
        assert len(await collect(broker, call_id=call_id)) == 202
        assert world.processes[0].bus.statistics().errors == 0
        assert broker.receiver.statistics().malformed > 1000
        assert broker.directory.malformed > 1000


@pytest.mark.feature("A12")
@pytest.mark.virtual_time
async def test_two_robots_have_skills_of_their_own() -> None:
    async with scene(worker=False) as world:
        for robot in ("robot1", "robot2"):
            context = RunContext(namespace=f"{robot}/")
            await world.add(Worker(name=f"{robot}/worker", context=context))
            await world.offered(f"{robot}_follow")
        broker = world.broker
        ids = [
            await broker.call(f"{robot}_follow", {"description": robot, "steps": 5}, caller="agent")
            for robot in ("robot1", "robot2")
        ]
        assert broker.ledger.leases.holders() == {"robot1/base": ids[0], "robot2/base": ids[1]}
        views = [await closed(broker, call_id) for call_id in ids]
        assert [(view.module, view.result) for view in views] == [
            ("robot1/worker", "followed robot1"),
            ("robot2/worker", "followed robot2"),
        ]


@pytest.mark.virtual_time
async def test_the_gateways_events_go_on_for_ever_and_can_be_stopped() -> None:
    async with scene() as world:
        seen = []

        async def listen() -> None:
            async for entry in world.broker.events(after=0, caller="agent"):
                seen.append((entry.offset, entry.event.type))

        task = asyncio.create_task(listen())
        await closed(world.broker, await world.broker.call("count", {"label": "a", "to": 2}, caller="agent"))
        await closed(world.broker, await world.broker.call("count", {"label": "a", "to": 2}, caller="you"))
        await until(lambda: len(seen) == 4)
        assert seen == [(1, "open"), (2, "update"), (3, "update"), (4, "close")]
        world.bridge.broadcast.close()
        await task


def test_runs_are_the_same_in_virtual_time() -> None:
    async def run() -> list[tuple[int, str, int, str]]:
        async with scene() as world:
            await run_some(world)
            return [(e.utime, e.call_id, e.seq, e.text) for e in await collect(world.broker)]

    async def run_some(world: Scene) -> None:
        for number in range(3):
            call_id = await world.broker.call("count", {"label": str(number), "to": 5}, caller="agent")
            await closed(world.broker, call_id)

    assert run_virtual(run()) == run_virtual(run())


@pytest.mark.virtual_time
async def test_a_closed_call_is_known_for_as_long_as_the_journal_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.ledger._KEPT_CLOSED", 1)

    async with scene() as world:
        broker = world.broker
        ids = []
        for value in range(3):
            ids.append(await broker.call("at_once", {"value": value}, caller="a", idempotency_key=f"k{value}"))
            await closed(broker, ids[-1])
        assert [view.call_id for view in await broker.calls()] == ids[-1:]
        assert (await broker.view(ids[0])).result == 0
        for number in (0, 0.0):  # JSON has one kind of number, and some clients write the second
            assert await broker.call("at_once", {"value": number}, caller="a", idempotency_key="k0") == ids[0]
        with pytest.raises(KeyUsedError, match="has other arguments"):
            await broker.call("at_once", {"value": False}, caller="a", idempotency_key="k0")
        assert await broker.wait(ids[0], "close", 1.0)
        await broker.cancel(ids[0], "too late")


@pytest.mark.virtual_time
async def test_a_call_that_can_not_be_looked_after_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    async with scene() as world:
        broker = world.broker
        bad, good = [await broker.call("patrol", {}, caller="me", on_duplicate="allow") for _ in range(2)]
        await until(lambda: all(call.state == "open" for call in broker.ledger.calls))
        broken = next(call for call in broker.ledger.calls if call.call_id == bad)
        broken.listed = None  # type: ignore[assignment]  # as if a fault of ours had left it so
        world.processes[-1].bus.partitioned = True
        assert (await closed(broker, good, 60.0)).outcome == "lost"
        assert 1 <= caplog.text.count(f"call {bad} could not be looked after") < 10, "a line now and then"


@pytest.mark.virtual_time
async def test_who_gives_up_takes_no_call_from_others_who_ask_by_the_same_key() -> None:
    async with scene() as world:
        broker = world.broker
        following = await broker.call("follow", {"description": "ann"}, caller="a")

        def ask() -> asyncio.Task[str]:
            call = broker.call("at_once", {"value": 1}, caller="b", idempotency_key="k", lease_wait_s=60.0)
            return asyncio.create_task(call)

        first, second, third = ask(), ask(), ask()
        await asyncio.sleep(1.0)
        second.cancel()
        await asyncio.wait([second])
        assert [each.done() for each in (first, third)] == [False, False]
        first.cancel()
        with pytest.raises(CallRejectedError, match="the first call with idempotency key 'k' was given up"):
            await third
        again = ask()
        await broker.cancel(following, "enough")
        assert (await closed(broker, await again)).result == 1
