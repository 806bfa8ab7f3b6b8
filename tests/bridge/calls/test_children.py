"""Skills that run other skills: what they hear of them, and that none outlives the one that it belongs to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import RunContext
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.calling import client
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, EVENTS, REQUESTS, STATUS
from tests.bridge.calls.families import Composer, child_of, open_calls, outcome_of
from tests.bridge.scene import Scene, SimulatedProcess, Worker, closed, collect, free_base, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K1")]
COUNT = {"label": "n", "to": 3}
FOLLOW = {"description": "ann"}
NOTHING = {"skill": "fly", "arguments": {}, "ends": "returns"}


@asynccontextmanager
async def composing(**more: Any) -> AsyncIterator[tuple[Scene, Composer, SimulatedProcess]]:
    async with scene(**more) as world:
        composer = Composer(name="composer")
        process = await world.add(composer)
        await world.offered("use")
        await until(lambda: process.host.directory.known("count"))  # an event of who is not known yet comes again
        yield world, composer, process


async def test_a_skill_hears_the_updates_and_the_result_of_one_that_it_runs() -> None:
    async with composing() as (world, composer, _):
        call_id = await world.broker.call("use", {"skill": "count", "arguments": COUNT}, caller="me")
        assert (await closed(world.broker, call_id)).result == "n"
        assert [text for text, _ in composer.heard] == ["n 1", "n 2", "n 3"]
        child = await world.broker.view(f"{call_id}~1")
        assert (child.parent, child.caller, child.outcome) == (call_id, "me", Outcome.COMPLETED)
        own = await collect(world.broker, call_id=call_id)
        assert [event.type for event in own] == ["open", "close"]


async def test_what_a_child_says_is_its_parents_update_unless_that_is_quiet() -> None:
    async with composing() as (world, _, _process):
        given = {"skill": "count", "arguments": COUNT, "quiet": False}
        call_id = await world.broker.call("use", given, caller="me")
        await closed(world.broker, call_id)
        own = await collect(world.broker, call_id=call_id)
        assert [event.text for event in own if event.type == "update"] == ["n 1", "n 2", "n 3"]


@pytest.mark.parametrize(
    ("skill", "arguments", "outcome", "text"),
    [
        ("fail", {}, "failed", "the floor is wet"),
        ("hang", {}, "timed_out", "it ran longer than 0.5 s"),
        ("follow", {"steps": 1}, "rejected", "description"),
        ("fly", {}, "rejected", "no skill is called 'fly'"),
    ],
)
async def test_an_error_of_a_child_reaches_who_runs_it(
    skill: str, arguments: dict[str, Any], outcome: str, text: str
) -> None:
    async with composing() as (world, composer, _):
        call_id = await world.broker.call("use", {"skill": skill, "arguments": arguments}, caller="me")
        view = await closed(world.broker, call_id)
        assert (view.outcome, text in view.text) == (Outcome.FAILED, True)
        (error,) = composer.errors
        assert (error.outcome, error.call_id, error.skill) == (outcome, f"{call_id}~1", skill)


@pytest.mark.parametrize("child", ["count", "fail", "fly"])
async def test_a_child_that_has_ended_is_neither_waited_for_nor_ended_again(child: str) -> None:
    async with composing() as (world, _, process):
        cancels: list[bytes] = []
        process.bus.subscribe(CANCELS, lambda channel, data: cancels.append(data))
        began = clock.monotonic()
        arguments = COUNT if child == "count" else {}
        await closed(
            world.broker, await world.broker.call("use", {"skill": child, "arguments": arguments}, caller="me")
        )
        assert clock.monotonic() - began < 0.9
        await asyncio.sleep(2.0)
        assert not cancels


async def test_a_cancelled_child_is_an_error_too() -> None:
    async with composing() as (world, composer, _):
        call_id = await world.broker.call("use", {"skill": "follow", "arguments": FOLLOW}, caller="me")
        await world.broker.cancel(await child_of(world, call_id), "enough of this")
        assert (await closed(world.broker, call_id)).text == "enough of this"
        assert [error.outcome for error in composer.errors] == ["cancelled"]


async def test_a_child_that_says_nothing_for_long_lives_as_long_as_its_module_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "_GIVEN_UP_S", 2.0)
    async with composing() as (world, composer, _):
        call_id = await world.broker.call("use", {"skill": "patrol", "arguments": {}}, caller="me")
        await child_of(world, call_id, answered=False)
        await asyncio.sleep(3.0)
        assert (composer.errors, (await world.broker.view(call_id)).state) == ([], "open")


async def test_a_read_only_skill_runs_no_other() -> None:
    async with composing() as (world, _, _process):
        call_id = await world.broker.call("look", {}, caller="me")
        assert (
            await closed(world.broker, call_id)
        ).text == "skill 'look' can't run 'at_once': it is declared read_only"


# A child ends with its parent


@pytest.mark.parametrize("ends", ["returns", "fails", "hangs"])
async def test_a_child_ends_with_its_parent(ends: str) -> None:
    async with composing() as (world, _, _process):
        given = {"skill": "follow", "arguments": FOLLOW, "ends": ends}
        call_id = await world.broker.call("leave", given, caller="me")
        child = await child_of(world, call_id)
        if ends == "hangs":
            await world.broker.cancel(call_id, "enough")
        await closed(world.broker, call_id)
        await closed(world.broker, child, 1.0)
        assert await outcome_of(world, child) is Outcome.CANCELLED
        assert await free_base(world.broker)


async def test_a_child_ends_with_a_parent_whose_time_is_over() -> None:
    async with composing() as (world, _, _process):
        call_id = await world.broker.call("hurry", {"skill": "follow", "arguments": FOLLOW}, caller="me")
        child = await child_of(world, call_id)
        assert (await closed(world.broker, call_id)).outcome is Outcome.TIMED_OUT
        assert await outcome_of(world, child) is Outcome.CANCELLED, "before its parent, and not after it"


async def test_a_parent_that_does_not_end_does_not_keep_its_children() -> None:
    async with composing() as (world, _, _process):
        call_id = await world.broker.call("deaf", {"skill": "follow", "arguments": FOLLOW}, caller="me")
        child = await child_of(world, call_id)
        await world.broker.cancel(call_id, "enough")
        view = await closed(world.broker, child, 1.0)
        assert view.text.endswith("of 'deaf', to which this one belongs, was asked to end: enough")
        assert await outcome_of(world, call_id) is None


async def test_a_parent_is_cancelled_before_its_children() -> None:
    async with composing() as (world, composer, process):
        call_id = await world.broker.call("use", {"skill": "follow", "arguments": FOLLOW}, caller="me")
        await child_of(world, call_id)
        process.bus.arriving = Faults(loss=1.0, affects=lambda name: name == CANCELS)
        await world.broker.cancel(call_id, "enough")
        await asyncio.sleep(0.2)
        process.bus.arriving = Faults()
        view = await closed(world.broker, call_id)
        assert (view.outcome, view.text, composer.errors) == (Outcome.CANCELLED, "enough", [])


async def test_all_that_a_dead_process_ran_ends_within_two_seconds() -> None:
    async with composing() as (world, _, process):
        worker = world.processes[1].modules["worker"]
        assert isinstance(worker, Worker)
        inner = {"skill": "follow", "arguments": FOLLOW}
        call_id = await world.broker.call("use", {"skill": "use", "arguments": inner}, caller="me")
        child = await child_of(world, f"{call_id}~1")
        assert worker.running == [child]
        killed = clock.monotonic()
        process.bus.partitioned = True
        await until(lambda: not worker.running)
        assert clock.monotonic() - killed <= 2.0
        await until(lambda: not open_calls(world))
        assert await outcome_of(world, call_id) is Outcome.LOST
        assert await outcome_of(world, child) is Outcome.CANCELLED
        assert await free_base(world.broker)


async def test_a_child_whose_process_dies_is_lost_and_who_runs_it_hears_of_it() -> None:
    async with composing() as (world, composer, _):
        call_id = await world.broker.call("use", {"skill": "follow", "arguments": FOLLOW}, caller="me")
        await child_of(world, call_id)
        world.processes[1].bus.partitioned = True
        view = await closed(world.broker, call_id)
        assert "module 'worker' is" in view.text
        assert [error.outcome for error in composer.errors] == ["lost"]


async def test_a_call_that_has_ended_runs_nothing_more() -> None:
    async with composing() as (world, composer, _):
        given = {"skill": "count", "arguments": COUNT, "ends": "returns"}
        call_id = await world.broker.call("leave", given, caller="me")
        await closed(world.broker, call_id)
        await until(composer.left.done)
        late = SkillCall(
            call_id=f"{call_id}~7", skill="follow", parent=call_id, arguments_json='{"description": "x"}'
        )
        world.inner.publish(CALLS, encode(late))
        view = await until_known(world, late.call_id)
        assert (view.outcome, view.text) == (
            Outcome.REJECTED,
            f"call {call_id!r}, which asks for 'follow', has ended",
        )


async def test_below_a_call_that_was_asked_to_end_nothing_begins() -> None:
    async with composing() as (world, _, _process):
        inner = {"skill": "use", "arguments": {"skill": "follow", "arguments": FOLLOW}}
        call_id = await world.broker.call("deaf", inner, caller="me")
        await child_of(world, f"{call_id}~1")
        await world.broker.cancel(call_id, "enough")
        late = SkillCall(
            call_id=f"{call_id}~1~9", skill="count", parent=f"{call_id}~1", arguments_json='{"label": "n", "to": 1}'
        )
        world.inner.publish(CALLS, encode(late))
        view = await until_known(world, late.call_id)
        assert view.text == f"call {call_id!r}, which leads to 'count', was asked to end: enough"


async def until_known(world: Scene, call_id: str) -> Any:
    await until(lambda: world.broker.ledger.calls.get(call_id) is not None)
    return await closed(world.broker, call_id)


async def test_a_child_of_somebody_else_is_none() -> None:
    async with composing() as (world, _, _process):
        call_id = await world.broker.call("use", {"skill": "follow", "arguments": FOLLOW}, caller="me")
        await child_of(world, call_id)
        before = world.broker.malformed()["calls"]
        world.inner.publish(CALLS, encode(SkillCall(call_id="other~1", skill="count", parent=call_id)))
        await until(lambda: world.broker.malformed()["calls"] == before + 1)
        assert world.broker.ledger.calls.get("other~1") is None


# Leases


async def test_a_child_may_use_what_its_parent_holds_and_the_parent_has_it_again() -> None:
    async with composing() as (world, _, _process):
        holders = world.broker.ledger.leases.holders
        inner = {"skill": "follow", "arguments": {**FOLLOW, "steps": 3}}
        call_id = await world.broker.call("use_base", {"skill": "use", "arguments": inner}, caller="me")
        assert holders() == {"base": call_id}
        grandchild = await child_of(world, f"{call_id}~1")
        assert holders() == {"base": grandchild}
        await closed(world.broker, grandchild)
        assert holders() in ({"base": call_id}, {}), "given back, if that had not ended too"
        assert (await closed(world.broker, call_id)).result == "followed ann"
        assert holders() == {}


async def test_children_get_what_is_held_one_after_the_other() -> None:
    async with composing() as (world, _, _process):
        call_id = await world.broker.call("one_after_the_other", {"steps": 3}, caller="me")
        assert (await closed(world.broker, call_id)).result == [0, 1, 2]


async def test_two_children_that_want_the_same_at_once_don_t_get_it() -> None:
    async with composing() as (world, _, _process):
        call_id = await world.broker.call("at_the_same_time", {}, caller="me")
        refused, result = (await closed(world.broker, call_id)).result
        assert refused.startswith("'at_once' needs 'base', which 'follow' holds for 'me' (")
        assert refused.endswith(f": call '{call_id}~1'")
        assert result == "followed ann"


async def test_a_child_that_would_end_what_it_belongs_to_is_refused() -> None:
    async with composing() as (world, _, _process):
        inner = {"skill": "replacing", "arguments": {"skill": "at_once", "arguments": {"value": 1}}}
        call_id = await world.broker.call("replacing", {"skill": "use", "arguments": inner}, caller="me")
        view = await closed(world.broker, call_id)
        assert view.outcome is Outcome.FAILED
        assert f"that is call {call_id!r}, to which this one would belong: replacing → use → replacing" in view.text


async def test_skills_that_run_each_other_without_an_end_are_refused_with_their_chain() -> None:
    async with composing() as (world, _, _process):
        arguments: dict[str, Any] = {"skill": "at_once", "arguments": {"value": 7}}
        for _ in range(7):
            arguments = {"skill": "use", "arguments": arguments}
        deep = await world.broker.call("use", arguments, caller="me")
        assert (await closed(world.broker, deep)).result == 7
        deeper = await world.broker.call("use", {"skill": "use", "arguments": arguments}, caller="me")
        text = (await closed(world.broker, deeper)).text
        assert text.startswith("skills may run each other 8 deep, and 'at_once' would be one more: use → use → ")
        assert text.endswith("use → at_once")


async def test_leases_in_families_outlive_the_bridge(tmp_path: Path) -> None:
    async with composing(journal=tmp_path / "journal") as (world, _, _process):
        inner = {"skill": "follow", "arguments": FOLLOW}
        call_id = await world.broker.call("use_base", inner, caller="me")
        child = await child_of(world, call_id)
        await world.kill_bridge()
        await asyncio.sleep(1)
        await world.start_bridge()
        assert world.broker.ledger.leases.holders() == {"base": child}
        await asyncio.sleep(2)
        assert open_calls(world) == [call_id, child], "nobody has ended them"
        await world.broker.cancel(child, "enough")
        await closed(world.broker, call_id)
        assert world.broker.ledger.leases.holders() == {}


# Nothing is lost


@pytest.mark.slow
@pytest.mark.parametrize("channel", [EVENTS, REQUESTS, CALLS, CANCELS, STATUS])
@pytest.mark.parametrize("seed", range(2))
async def test_lost_datagrams_lose_nothing(channel: str, seed: int) -> None:
    faults = Faults(loss=0.2, affects=lambda name: name == channel)
    async with composing(faults=faults) as (world, composer, _):
        for number, member in enumerate(world.processes):
            member.bus._random.seed(f"{seed} {number}")
        for _ in range(3):
            composer.heard.clear()
            given = {"skill": "count", "arguments": {"label": "n", "to": 40}, "quiet": False}
            call_id = await world.broker.call("use", given, caller="me")
            assert (await closed(world.broker, call_id, 30.0)).result == "n"
            assert [text for text, _ in composer.heard] == [f"n {number}" for number in range(1, 41)]
            own = await collect(world.broker, call_id=call_id)
            assert [event.seq for event in own] == list(range(1, len(own) + 1))
        for ends in ("returns", "fails"):
            given = {"skill": "follow", "arguments": FOLLOW, "ends": ends}
            await closed(world.broker, await world.broker.call("leave", given, caller="me"), 30.0)
            await until(lambda: not open_calls(world), 30.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
async def test_what_only_the_parent_misses_is_sent_again_to_it(seed: int) -> None:
    async with composing() as (world, composer, process):
        process.bus.arriving = Faults(loss=0.3, affects=lambda name: name in (EVENTS, STATUS))
        process.bus._random.seed(seed)
        given = {"skill": "count", "arguments": {"label": "n", "to": 200}}
        call_id = await world.broker.call("use", given, caller="me")
        assert (await closed(world.broker, call_id, 30.0)).result == "n"
        assert [text for text, _ in composer.heard] == [f"n {number}" for number in range(1, 201)]


@pytest.mark.slow
async def test_other_calls_do_not_wait_for_the_parent_of_a_child() -> None:
    async with composing() as (world, _, _process):
        call_id = await world.broker.call("use", {"skill": "search", "arguments": {}}, caller="me")
        await child_of(world, call_id, answered=False)
        other = await world.broker.call("count", {"label": "n", "to": 1200}, caller="me")
        assert (await closed(world.broker, other, 20.0)).result == "n"


async def test_who_has_heard_more_than_the_bridge_hears_of_its_end_all_the_same() -> None:
    async with composing() as (world, composer, _):
        call_id = await world.broker.call("use", {"skill": "follow", "arguments": FOLLOW}, caller="me")
        await child_of(world, call_id)
        bridge, worker = world.processes[0], world.processes[1]
        bridge.bus.arriving = Faults(loss=1.0, affects=lambda name: name == EVENTS)
        await asyncio.sleep(0.7)
        worker.bus.partitioned = True
        await until(lambda: bool(composer.errors), 4.0)
        assert [error.outcome for error in composer.errors] == ["lost"]


async def test_a_host_ends_the_children_of_what_has_ended_without_the_bridge() -> None:
    async with composing() as (world, _, _process):
        worker = world.processes[1].modules["worker"]
        assert isinstance(worker, Worker)
        given = {"skill": "follow", "arguments": FOLLOW, "ends": "returns"}
        await world.broker.call("leave", given, caller="me")
        await until(lambda: bool(worker.running))
        await world.kill_bridge()
        await until(lambda: not worker.running, 1.0)


async def test_a_bridge_that_dies_in_between_costs_a_result_nothing(tmp_path: Path) -> None:
    async with composing(journal=tmp_path / "journal") as (world, composer, _):
        given = {"skill": "count", "arguments": {"label": "n", "to": 150}}
        call_id = await world.broker.call("use", given, caller="me")
        await child_of(world, call_id)
        await world.kill_bridge()
        await asyncio.sleep(4)  # the child is over in the meantime, and so is its parent
        assert len(composer.heard) == 150
        await world.start_bridge()
        assert (await closed(world.broker, call_id)).result == "n"
        assert (await closed(world.broker, f"{call_id}~1")).outcome is Outcome.COMPLETED


@pytest.mark.parametrize("kept", [1000, 1])
async def test_a_child_that_was_lost_unheard_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.ledger._KEPT_CLOSED", kept)
    async with composing(journal=tmp_path / "journal") as (world, composer, process):
        call_id = await world.broker.call("use", {"skill": "follow", "arguments": FOLLOW}, caller="me")
        child = await child_of(world, call_id)
        process.bus.arriving = Faults(loss=1.0, affects=lambda name: name == EVENTS)
        world.processes[1].bus.partitioned = True
        await closed(world.broker, child)
        await closed(world.broker, await world.broker.call("leave", NOTHING, caller="me"))
        await world.kill_bridge()
        process.bus.arriving = Faults()
        await world.start_bridge()
        await closed(world.broker, call_id)
        assert [(error.outcome, error.call_id) for error in composer.errors] == [("lost", child)]


async def test_a_robot_that_only_its_own_parts_hear_stops_all_the_same(tmp_path: Path) -> None:
    async with composing(journal=tmp_path / "journal") as (world, composer, _):
        worker = world.processes[1].modules["worker"]
        assert isinstance(worker, Worker)
        call_id = await world.broker.call("use", {"skill": "follow", "arguments": FOLLOW}, caller="me")
        await child_of(world, call_id)
        await world.kill_bridge()
        killed = clock.monotonic()
        await until(lambda: not worker.running)
        assert 1.9 < clock.monotonic() - killed < 2.6
        await until(lambda: bool(composer.errors))
        assert [error.outcome for error in composer.errors] == ["lost"]
        assert "nobody has acknowledged this call" in str(composer.errors[0])


@pytest.mark.slow
async def test_children_of_a_parent_that_ended_while_the_bridge_was_away_are_ended(tmp_path: Path) -> None:
    async with composing(journal=tmp_path / "journal") as (world, _, process):
        given = {"skill": "search", "arguments": {}, "ends": "hangs"}
        call_id = await world.broker.call("leave", given, caller="me")
        child = await child_of(world, call_id, answered=False)
        await world.kill_bridge()
        process.bus.partitioned = True
        await asyncio.sleep(1)
        await world.start_bridge()
        await closed(world.broker, call_id)
        assert (await closed(world.broker, child, 1.0)).outcome is Outcome.CANCELLED


# Names


async def test_a_name_is_looked_for_in_the_callers_namespace_first() -> None:
    async with scene() as world:
        robots = {}
        for name in ("a", "b"):
            context = RunContext(namespace=f"{name}/")
            worker, composer = (
                Worker(name=f"{name}/worker", context=context),
                Composer(name=f"{name}/c", context=context),
            )
            await world.add(worker, composer)
            robots[name] = worker
        await world.offered("a_use")
        await world.offered("b_use")

        async def ran(skill: str) -> str:
            given = {"skill": skill, "arguments": {"value": 1}}
            call_id = await world.broker.call("a_use", given, caller="me")
            await closed(world.broker, call_id)
            return (await world.broker.view(f"{call_id}~1")).module

        assert await ran("at_once") == "a/worker"
        assert await ran("b_at_once") == "b/worker"
        assert await ran("/b/at_once") == "b/worker"
        assert await ran("/at_once") == "worker"
        given = {"then": "at_once", "arguments": {"value": 1}}
        begun = (await closed(world.broker, await world.broker.call("a_chain", given, caller="me"))).result
        assert (await closed(world.broker, begun)).module == "a/worker"
