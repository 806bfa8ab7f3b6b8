"""A call that is lost is closed, also where the journal does not take that at once."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.journal import tables
from dimos_streams.journal.query import Query
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.module import RunContext, Services
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import MAX_SEQ, ToolEvent
from dimos_streams.tool_stream.protocol.channels import CANCELS, EVENTS, STATUS
from dimos_streams.tool_stream.wire.packing import pack_event
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from tests.bridge.scene import Worker, answered, closed, event, scene
from tests.helpers import until


@pytest.mark.virtual_time
async def test_a_lost_call_whose_close_the_journal_could_not_take_is_closed_at_the_next_look(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene() as world:
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="you")
        await answered(world.broker, call_id)
        write, failed = tables.write, 0

        def fail_at_first(db: sqlite3.Connection, *rows: Any) -> None:
            nonlocal failed
            if failed < 2:
                failed += 1
                raise MemoryError
            write(db, *rows)

        world.processes[-1].bus.partitioned = True
        monkeypatch.setattr(tables, "write", fail_at_first)
        assert (await closed(world.broker, call_id)).outcome == "lost"
        assert (failed, world.broker.ledger.leases.holders()) == (2, {})
        assert f"call {call_id} could not be closed as lost" in caplog.text


@pytest.mark.virtual_time
async def test_a_call_that_its_living_module_does_not_know_is_lost_and_says_so() -> None:
    async with scene() as world:
        call = CallState(call_id="c1", skill="follow", module="worker", caller="you", state="open")
        world.broker.ledger.begin(call)
        lost = await closed(world.broker, "c1")
        assert (lost.outcome, lost.text) == ("lost", "module 'worker' does not know the call any more")


@pytest.mark.virtual_time
@pytest.mark.parametrize(("instance", "who_beats"), [("gone", "worker"), ("", "somebody")])
async def test_a_call_lives_by_heartbeats_of_its_own_instance_only(instance: str, who_beats: str) -> None:
    async with scene() as world:
        call = CallState(call_id="c1", skill="follow", module="worker", caller="you", state="open", instance=instance)
        world.broker.ledger.begin(call)
        status = ModuleStatus(module=who_beats, instance="another", call_ids=["c1"], last_seqs=[0])

        async def beat() -> None:
            while True:
                world.inner.publish(STATUS, encode(status))
                await asyncio.sleep(0.2)

        beating = asyncio.create_task(beat())
        assert (await closed(world.broker, "c1")).outcome == "lost"
        beating.cancel()


@pytest.mark.virtual_time
async def test_a_call_is_taken_over_by_no_instance_that_only_says_that_it_runs_it() -> None:
    async with scene() as world:
        call = CallState(call_id="c1", skill="follow", module="worker", caller="you", state="open")
        world.broker.ledger.begin(call)
        status = ModuleStatus(module="worker", instance="another", call_ids=["c1"], last_seqs=[0])
        world.inner.publish(STATUS, encode(status))
        await asyncio.sleep(1.0)
        assert call.instance == ""


@pytest.mark.virtual_time
async def test_a_call_is_opened_by_no_other_than_was_asked_to_run_it() -> None:
    async with scene() as world:
        world.processes[-1].bus.partitioned = True
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="you")
        forged = replace(event(1, "open", call_id=call_id), module="worker", instance="forged")
        world.inner.publish(EVENTS, pack_event(forged))
        lost = await closed(world.broker, call_id)
        assert (lost.outcome, "did not begin the call" in lost.text) == ("lost", True)


@pytest.mark.virtual_time
async def test_a_gap_is_no_sign_of_life() -> None:
    call = CallState(call_id="c1", skill="follow", module="worker", caller="you", state="open")
    await asyncio.sleep(5.0)
    call.apply(event(1, "gap"))
    assert call.listed == 0.0
    call.apply(event(2))
    assert call.listed == clock.monotonic()


@pytest.mark.virtual_time
async def test_a_close_that_is_made_behind_the_last_seq_is_an_event_for_readers_and_on_the_bus() -> None:
    async with scene() as world:
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="you")
        await answered(world.broker, call_id)
        call = world.broker.ledger.calls.get(call_id)
        assert call is not None
        call.last_seq = MAX_SEQ  # as after an event of a module that counts wrongly
        on_bus: list[ToolEvent] = []
        world.inner.subscribe(EVENTS, lambda _, data: on_bus.append(unpack_event(data)))
        world.processes[-1].bus.partitioned = True
        assert (await closed(world.broker, call_id)).outcome == "lost"
        newest = world.bridge.journal.read(Query(0), 1000, 1 << 20).entries[-1].decoded.event
        assert (newest.type, newest.seq) == ("close", MAX_SEQ + 1)
        assert ToolEvent.from_dict(newest.to_dict()) == newest
        await until(lambda: newest in on_bus)


@pytest.mark.virtual_time
async def test_a_bridge_that_hears_a_lost_call_again_does_not_answer_for_it() -> None:
    async with scene(worker=False) as world:
        worker = Worker(name="worker", context=RunContext(services=Services(), loss_bound_s=6.0))
        await world.add(worker)
        await world.offered("follow")
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="you")
        await answered(world.broker, call_id)
        world.bridge_bus.partitioned = True
        assert (await closed(world.broker, call_id)).outcome == "lost"
        assert worker.running == [call_id]
        world.bridge_bus.faults = Faults(loss=1.0, affects=lambda channel: channel == CANCELS)
        world.bridge_bus.partitioned = False
        await until(lambda: not worker.running)


@pytest.mark.virtual_time
async def test_a_call_whose_close_comes_while_it_is_given_up_has_no_second_one() -> None:
    async with scene() as world:
        call_id = await world.broker.call("search", {}, caller="you")
        call = world.broker.ledger.calls.get(call_id)
        assert call is not None
        await until(lambda: call.instance)
        on_bus: list[ToolEvent] = []
        world.inner.subscribe(EVENTS, lambda _, data: on_bus.append(unpack_event(data)))
        world.processes[-1].bus.partitioned = True
        world.broker._watchdog.lose(call, "it is silent")
        world.broker.ledger.enter([replace(event(call.last_seq + 1, "close", call_id=call_id), caller="you")])
        await asyncio.sleep(1.0)
        assert (await world.broker.view(call_id)).outcome == "completed"
        assert [each for each in on_bus if each.type == "close"] == []
