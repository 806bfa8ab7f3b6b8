"""What becomes of calls when their host, their module or the bridge itself ends and starts again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.bus.subscription import DEFAULT_CAPACITY
from dimos_streams.errors import (
    CallRejectedError,
    SkillUnavailableError,
)
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.family import child_id
from dimos_streams.tool_stream.liveness.heartbeat import process_ended
from dimos_streams.tool_stream.protocol.channels import CALLS, STATUS
from tests.bridge.scene import Worker, answered, closed, collect, event, free_base, scene
from tests.helpers import hold_up, until


@pytest.mark.virtual_time
async def test_keys_are_known_after_a_restart_however_large_the_results_of_their_calls_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.state.remembered_calls.KEEP_CLOSED_BYTES", 1)
    async with scene(journal=tmp_path / "journal.sqlite") as world:

        async def ask(value: int) -> str:
            return await world.broker.call("at_once", {"value": value}, caller="me", idempotency_key=f"k{value}")

        ids = []
        for value in range(3):
            ids.append(await ask(value))
            await closed(world.broker, ids[-1])
        await world.kill_bridge()
        await world.start_bridge()
        await world.offered("at_once")
        assert list(world.broker.ledger.calls) == [], "there is no room for any"
        assert [await ask(value) for value in range(3)] == ids


@pytest.mark.feature("H2")
@pytest.mark.virtual_time
async def test_a_call_that_was_to_begin_by_a_time_is_not_begun_later_by_the_next_bridge(tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        process = world.processes[1]
        process.bus.partitioned = True  # the module does not hear of it
        begin_by = clock.steady() + 0.3
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="me", begin_by=begin_by)
        await world.kill_bridge()
        process.bus.partitioned = False
        await asyncio.sleep(0.5)
        await world.start_bridge()
        view = await closed(world.broker, call_id)
        assert (view.outcome, view.text) == (Outcome.LOST, "module 'worker' did not begin the call within 2 s")
        worker = process.modules["worker"]
        assert isinstance(worker, Worker)
        assert worker.running == []


@pytest.mark.feature("A11")
@pytest.mark.virtual_time
async def test_a_call_whose_host_dies_is_lost_and_its_lease_free() -> None:
    async with scene() as world:
        broker, process = world.broker, world.processes[1]
        call_id = await broker.call("follow", {"description": "ann"}, caller="agent")
        await answered(broker, call_id)
        before = clock.monotonic()
        process.bus.partitioned = True
        view = await closed(broker, call_id)
        assert view.outcome is Outcome.LOST
        assert clock.monotonic() - before <= 2.0
        assert "is gone: silent for" in view.text
        assert broker.ledger.leases.holders() == {}
        with pytest.raises(SkillUnavailableError, match="'worker' is gone: silent for"):
            await broker.call("at_once", {"value": 1}, caller="agent")
        assert [skill.available for skill in await broker.skills()] == [False] * 8

        events = await collect(broker, call_id=call_id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert [event.type for event in events].count("close") == 1

        worker = process.modules["worker"]
        assert isinstance(worker, Worker)
        assert worker.running == [call_id], "it does not know yet that it is given up"
        process.bus.partitioned = False
        await until(lambda: not worker.running)
        assert await free_base(broker)
        assert await collect(broker, call_id=call_id) == events, "nothing follows a close"


@pytest.mark.slow
@pytest.mark.feature("G1")
@pytest.mark.virtual_time
async def test_a_token_that_vanishes_hastens_what_silence_says_and_nothing_else() -> None:
    async with scene() as world:
        broker, process = world.broker, world.processes[1]
        call_id = await broker.call("follow", {"description": "ann"}, caller="agent")
        lasting = await broker.call("search", {}, caller="agent", on_loss="continue")
        await answered(broker, call_id)
        view = broker.directory.module("worker")
        assert view is not None
        lose_token = partial(broker.directory._on_token, view.instance, False)

        lose_token()
        await asyncio.sleep(3)
        assert [call_id, lasting] == [call.call_id for call in broker.ledger.calls.open], "who is heard lives"
        assert broker.directory.unwell() == {}

        process.bus.partitioned = True
        before = clock.monotonic()
        lose_token()
        broker.directory._on_token("somebody else's", False)
        lost = await closed(broker, call_id)
        assert (lost.outcome, lost.text) == (Outcome.LOST, "module 'worker' is gone: its links have ended")
        assert 0.5 <= clock.monotonic() - before <= 0.8
        assert broker.directory.unwell()["worker"].startswith("gone: its links ended")
        with pytest.raises(SkillUnavailableError, match="'worker' is gone: its links ended"):
            await broker.call("at_once", {"value": 1}, caller="agent")
        assert [lasting] == [call.call_id for call in broker.ledger.calls.open], "it may be a link that is cut"

        process.bus.partitioned = False
        await until(lambda: broker.directory.unwell() == {})


@pytest.mark.slow
@pytest.mark.feature("A5", "F6")
@pytest.mark.virtual_time
async def test_a_silence_that_noise_may_have_made_lasts_four_times_as_long() -> None:
    """A flood of heartbeats leaves no room for all of them."""
    async with scene() as world:
        broker, process = world.broker, world.processes[1]
        call_id = await broker.call("follow", {"description": "ann"}, caller="agent")
        await answered(broker, call_id)

        def shout() -> None:
            for number in range(DEFAULT_CAPACITY + 1):
                world.inner.publish(STATUS, encode(ModuleStatus(module=f"forged{number % 50}")))

        process.bus.partitioned = True
        before = clock.monotonic()
        await asyncio.sleep(0.5)
        shout()
        assert (await closed(broker, call_id)).outcome is Outcome.LOST
        assert clock.monotonic() - before == pytest.approx(6.0, abs=0.5)

        process.bus.partitioned = False
        await until(lambda: broker.directory.module("worker").alive)  # type: ignore[union-attr]
        process.bus.partitioned = True
        call_id = await broker.call("follow", {"description": "bob"}, caller="agent")
        shout()
        before = clock.monotonic()
        view = await closed(broker, call_id)
        assert (view.outcome, view.text) == (Outcome.LOST, "module 'worker' did not begin the call within 8 s")
        assert clock.monotonic() - before == pytest.approx(8.0, abs=0.5)


@pytest.mark.feature("A5")
@pytest.mark.virtual_time
async def test_what_a_bridge_did_not_hear_while_it_was_held_up_itself_is_no_silence() -> None:
    """A loop that does not run is a clock that jumps."""
    async with scene() as world:
        broker, process = world.broker, world.processes[1]
        running = await broker.call("search", {}, caller="agent")
        while (await broker.view(running)).state != "open":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        process.bus.partitioned = True
        begun = await broker.call("at_once", {"value": 1}, caller="agent")
        await asyncio.sleep(0.3)

        hold_up(5.0)
        assert broker.directory.unwell() == {}
        await asyncio.sleep(0.3)
        process.bus.partitioned = False
        assert (await closed(broker, begun)).outcome is Outcome.COMPLETED
        assert broker.directory.unwell() == {}
        assert [running] == [call.call_id for call in broker.ledger.calls.open]

        process.bus.partitioned = True
        before = clock.monotonic()
        assert (await closed(broker, running)).outcome is Outcome.LOST
        assert clock.monotonic() - before == pytest.approx(1.5, abs=0.5)


@pytest.mark.virtual_time
async def test_a_module_that_says_goodbye_is_followed_at_once() -> None:
    async with scene() as world:
        broker = world.broker
        await world.processes[1].host.stop()
        assert broker.directory.unwell() == {"worker": "ended"}
        await world.add(Worker(name="worker"))
        call_id = await broker.call("at_once", {"value": 1}, caller="agent")
        before = clock.monotonic()
        assert (await closed(broker, call_id)).outcome is Outcome.COMPLETED
        assert clock.monotonic() - before < 0.1
        assert broker.directory.unwell() == {}
        assert broker.contradictions() == 0


@pytest.mark.virtual_time
async def test_a_call_whose_module_starts_again_is_lost() -> None:
    async with scene() as world:
        broker = world.broker
        call_id = await broker.call("follow", {"description": "ann"}, caller="agent")
        await answered(broker, call_id)
        await asyncio.sleep(0.5)
        world.processes[1].bus.partitioned = True
        await world.add(Worker(name="worker"))
        view = await closed(broker, call_id, 2.0)
        assert (view.outcome, view.text) == (
            Outcome.LOST,
            "module 'worker' was started again while the call ran",
        )
        assert await free_base(broker)


def say_of_worker(bus: Bus, health: str, pid: int = 0) -> None:
    """As the supervisor of its process does; in virtual time a process has no number."""
    bus.publish(STATUS, encode(ModuleStatus(module="worker", pid=pid, health=health)))


@pytest.mark.feature("A11")
@pytest.mark.virtual_time
@pytest.mark.parametrize("then", ["silence", "a token that vanishes", "a start"])
async def test_a_lost_call_says_how_its_process_ended_if_that_is_known(then: str) -> None:
    async with scene() as world:
        broker, process = world.broker, world.processes[1]
        call_id = await broker.call("follow", {"description": "ann"}, caller="agent")
        await answered(broker, call_id)
        await asyncio.sleep(0.5)
        view = broker.directory.module("worker")
        assert view is not None
        process.bus.partitioned = True
        say_of_worker(world.inner, process_ended("ended by SIGKILL"))
        say_of_worker(world.inner, process_ended("ended by another's signal"), pid=1)
        if then == "a token that vanishes":
            broker.directory._on_token(view.instance, False)
        elif then == "a start":
            await world.add(Worker(name="worker"))
        lost = await closed(broker, call_id)
        again = "was started again while the call ran: " if then == "a start" else "is gone: "
        assert (lost.outcome, lost.text) == (
            Outcome.LOST,
            f"module 'worker' {again}its process ended by SIGKILL",
        )
        await asyncio.sleep(3)
        health = {} if then == "a start" else {"worker": "gone: its process ended by SIGKILL"}
        assert broker.directory.unwell() == health


@pytest.mark.virtual_time
async def test_the_end_of_a_process_that_is_heard_is_not_believed() -> None:
    async with scene() as world:
        broker, process = world.broker, world.processes[1]
        call_id = await broker.call("follow", {"description": "ann"}, caller="agent")
        await answered(broker, call_id)
        say_of_worker(world.inner, process_ended("ended by a liar"))
        await asyncio.sleep(2)
        assert broker.directory.unwell() == {}
        process.bus.partitioned = True
        assert (await closed(broker, call_id)).text.startswith("module 'worker' is gone: silent for")


@pytest.mark.virtual_time
async def test_a_module_that_has_said_goodbye_is_not_said_to_have_died() -> None:
    async with scene() as world:
        await world.processes[1].host.stop()
        say_of_worker(world.inner, process_ended("ended with exit code 0"))
        await asyncio.sleep(0.5)
        assert world.broker.directory.unwell() == {"worker": "ended"}


@pytest.mark.feature("A11")
@pytest.mark.virtual_time
async def test_a_call_to_a_module_that_failed_says_why() -> None:
    async with scene() as world:
        broker, why = world.broker, "ended with exit code 1 (module 'worker' failed: no power)"
        await world.processes[1].host.stop()
        say_of_worker(world.inner, process_ended(why))
        call_id = await broker.call("follow", {"description": "ann"}, caller="agent")
        assert (await closed(broker, call_id)).text == (
            f"module 'worker' did not begin the call within 2 s: its process {why}"
        )
        with pytest.raises(SkillUnavailableError, match=r"'worker' is gone: its process ended .* no power\)$"):
            await broker.call("follow", {"description": "ann"}, caller="agent")


@pytest.mark.virtual_time
async def test_a_call_that_its_module_does_not_know_is_lost() -> None:
    async with scene() as world:
        broker = world.broker
        # The request is lost on the way, and every repetition.
        world.processes[0].bus.faults = Faults(loss=1.0, affects=lambda channel: channel == CALLS)
        begun = clock.monotonic()
        call_id = await broker.call("follow", {"description": "ann"}, caller="agent")
        view = await closed(broker, call_id)
        assert (view.outcome, view.last_seq) == (Outcome.LOST, 2)
        assert 2.0 <= clock.monotonic() - begun <= 2.3
        assert [event.type for event in await collect(broker, call_id=call_id)] == ["open", "close"]
        world.processes[0].bus.faults = Faults()
        assert await free_base(broker)


@pytest.mark.virtual_time
async def test_a_bridge_that_starts_again_knows_its_calls(tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        call_id = await world.broker.call(
            "follow", {"description": "ann", "steps": 50}, caller="agent", idempotency_key="k"
        )
        counted = await world.broker.call("count", {"label": "a", "to": 3}, caller="agent")
        await closed(world.broker, counted)
        await asyncio.sleep(1)
        offset = await world.broker.offset()
        await world.kill_bridge()
        await asyncio.sleep(1)

        await world.start_bridge()
        broker = world.broker
        assert broker.ledger.leases.holders() == {"base": call_id}, "before anybody could take it"
        await world.offered("follow")
        assert await broker.offset() >= offset
        assert broker.ledger.leases.holders() == {"base": call_id}
        assert (await broker.view(counted)).result == "a"
        again = await broker.call("follow", {"description": "ann", "steps": 50}, caller="agent", idempotency_key="k")
        assert again == call_id
        with pytest.raises(CallRejectedError):
            await broker.call("at_once", {"value": 1}, caller="agent")
        view = await closed(broker, call_id)
        assert (view.outcome, view.answer) == (Outcome.COMPLETED, "following ann")
        events = await collect(broker, call_id=call_id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert await free_base(broker)


@pytest.mark.virtual_time
async def test_a_call_that_its_module_had_not_heard_of_begins_when_the_bridge_is_back(tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        world.processes[-1].bus.partitioned = True
        call_id = await world.broker.call("at_once", {"value": 7}, caller="agent")
        await world.kill_bridge()
        world.processes[-1].bus.partitioned = False
        await world.start_bridge()
        assert (await closed(world.broker, call_id)).result == 7


@pytest.mark.virtual_time
async def test_a_motion_that_a_dead_module_may_have_begun_does_not_begin_when_the_bridge_is_back(
    tmp_path: Path,
) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        call_id = await world.broker.call("at_once", {"value": 7}, caller="agent")
        await world.kill_bridge()
        world.processes[1].bus.partitioned = True
        successor = await world.add(Worker(name="worker"))
        successor.bus.faults = Faults(loss=1.0)  # it hears the bridge before that hears of it
        await asyncio.sleep(0.1)
        await world.start_bridge()
        await asyncio.sleep(0.3)
        successor.bus.faults = Faults()
        view = await closed(world.broker, call_id)
        assert (view.outcome, view.text.partition(": ")[2]) == (Outcome.LOST, "nobody knows whether it did")
        await asyncio.sleep(1.0)
        assert successor.host._skills.outcome(call_id) is Outcome.LOST, "it was told, and has not begun"


@pytest.mark.virtual_time
async def test_a_call_that_ended_while_the_bridge_was_away_ends_when_it_is_back(tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        ended = await world.broker.call("follow", {"description": "ann", "steps": 5}, caller="agent")
        await answered(world.broker, ended)
        await world.kill_bridge()
        await asyncio.sleep(5)
        await world.start_bridge()
        await world.offered("follow")
        assert (await closed(world.broker, ended)).outcome is Outcome.COMPLETED

        dead = await world.broker.call("follow", {"description": "bob"}, caller="agent")
        await answered(world.broker, dead)
        await world.kill_bridge()
        world.processes[1].bus.partitioned = True
        await world.add(Worker(name="worker"))
        await world.start_bridge()
        await world.offered("follow")
        assert (await closed(world.broker, dead, 2.5)).outcome is Outcome.LOST
        assert await free_base(world.broker)


@pytest.mark.virtual_time
async def test_a_bridge_without_its_journal_learns_of_the_calls_that_run() -> None:
    async with scene() as world:
        call_id = await world.broker.call("follow", {"description": "ann", "steps": 100}, caller="agent")
        await asyncio.sleep(1)
        await world.kill_bridge()
        await world.start_bridge()
        broker = world.broker
        await until(lambda: broker.ledger.leases.holders() == {"base": call_id})
        view = await closed(broker, call_id, 20)
        assert broker.ledger.leases.holders() == {}
        assert (view.outcome, view.result) == (Outcome.COMPLETED, "followed ann")
        assert (view.module, view.skill, view.caller) == ("worker", "follow", "agent")
        events = await collect(broker, call_id=call_id)
        assert [event.type for event in events[:2]] == ["open", "gap"]
        assert events[1].data["from_seq"] == 2
        assert [event.seq for event in events[1:]] == list(range(events[1].seq, events[-1].seq + 1))
        assert {event.caller for event in events} == {"agent"}


@pytest.mark.virtual_time
async def test_a_part_of_a_call_of_which_a_new_bridge_has_heard_first_is_not_ended() -> None:
    async with scene() as world:
        ledger = world.broker.ledger
        ledger.enter([event(1, "open", call_id=child_id("c1", 1))])
        await asyncio.sleep(0.5)
        ledger.enter([event(1, "open", call_id="c1")])
        await asyncio.sleep(0.5)
        assert [call.cancel_reason for call in ledger.calls.open] == [None, None]


@pytest.mark.virtual_time
async def test_what_runs_without_its_lease_and_does_not_end_has_it_as_soon_as_it_is_free() -> None:
    async with scene() as world:
        ledger = world.broker.ledger
        for call_id in ("c1", "c2"):
            ledger.enter([event(1, "open", call_id=call_id, data={"resources": ["base"]})])
        await until(lambda: (call := ledger.calls.get("c2")) is not None and call.cancel_reason)
        assert ledger.leases.holders() == {"base": "c1"}
        ledger.enter([event(2, "close", call_id="c1")])
        await until(lambda: ledger.leases.holders() == {"base": "c2"})


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_bridge_that_was_held_up_does_not_give_calls_up() -> None:
    async with scene() as world:
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="agent")
        await answered(world.broker, call_id)
        for _ in range(10):
            # Wherever in the period of a heartbeat it happens.
            await asyncio.sleep(2.05)
            hold_up(8.0)
        await asyncio.sleep(5)
        assert (await world.broker.view(call_id)).state == "open"


@pytest.mark.virtual_time
async def test_a_call_whose_first_events_are_gone_is_known_by_those_that_follow() -> None:
    async with scene() as world:
        missing = replace(event(3, "gap"), module="", skill="", caller="")
        world.broker.ledger.enter([missing])
        assert (await world.broker.view("c1")).skill == ""
        world.broker.ledger.enter([event(4, "update", text="on my way")])
        view = await world.broker.view("c1")
        assert (view.module, view.skill, view.caller, view.answer) == ("worker", "follow", "agent", "on my way")


@pytest.mark.feature("F6")
@pytest.mark.virtual_time
async def test_a_call_that_was_to_end_is_to_end_for_the_next_bridge_too(tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="agent")
        await answered(world.broker, call_id)
        world.processes[1].bus.partitioned = True  # it does not hear of it
        await world.broker.cancel(call_id, "enough")
        await world.kill_bridge()
        world.processes[1].bus.partitioned = False
        await world.start_bridge()
        view = await closed(world.broker, call_id)
        assert (view.outcome, view.text) == (Outcome.CANCELLED, "enough")
