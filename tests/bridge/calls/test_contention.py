"""Calls that want the same: leases, duplicates, idempotency keys."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.errors import (
    CallRejectedError,
    KeyUsedError,
)
from dimos_streams.module import Module
from dimos_streams.skill import OnLoss, skill
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.scene import Worker, answered, closed, free_base, scene
from tests.helpers import until


@pytest.mark.feature("A11")
@pytest.mark.parametrize(
    ("skill", "arguments", "outcome"),
    [
        ("follow", {"description": "x", "steps": 3}, Outcome.COMPLETED),
        ("at_once", {"value": 3}, Outcome.COMPLETED),  # returns before any update
        ("fail", {}, Outcome.FAILED),
        ("fail", {"answer_first": True}, Outcome.FAILED),
        ("hang", {}, Outcome.TIMED_OUT),
    ],
)
@pytest.mark.virtual_time
async def test_leases_end_with_the_call(skill: str, arguments: dict[str, object], outcome: Outcome) -> None:
    async with scene() as world:
        call_id = await world.broker.call(skill, arguments, caller="agent")
        assert world.broker.ledger.leases.holders() == {"base": call_id}
        assert (await closed(world.broker, call_id)).outcome is outcome
        assert world.broker.ledger.leases.holders() == {}
        assert await free_base(world.broker)


@pytest.mark.feature("A11")
@pytest.mark.virtual_time
async def test_a_busy_resource_is_refused_with_its_holder_or_waited_for() -> None:
    async with scene() as world:
        broker = world.broker
        first = await broker.call("follow", {"description": "ann"}, caller="agent")
        await answered(broker, first)
        with pytest.raises(CallRejectedError, match=r"needs 'base', which 'follow' holds for 'agent' \(") as busy:
            await broker.call("at_once", {"value": 1}, caller="other")
        assert (busy.value.holder, busy.value.resource) == (first, "base")

        begun = clock.monotonic()
        with pytest.raises(CallRejectedError):
            await broker.call("at_once", {"value": 1}, caller="other", lease_wait_s=2.0)
        assert clock.monotonic() - begun == pytest.approx(2.0, abs=0.1)

        waiting = asyncio.create_task(broker.call("at_once", {"value": 1}, caller="other", lease_wait_s=30.0))
        await asyncio.sleep(1)
        await broker.cancel(first, "enough")
        assert (await closed(broker, first)).outcome is Outcome.CANCELLED
        assert (await closed(broker, await waiting)).outcome is Outcome.COMPLETED


@pytest.mark.feature("A11")
@pytest.mark.virtual_time
async def test_who_is_overtaken_by_another_waits_no_longer_than_it_wanted_to() -> None:
    async with scene() as world:
        broker = world.broker
        first = await broker.call("follow", {"description": "ann"}, caller="agent")
        overtaking = asyncio.create_task(
            broker.call("follow", {"description": "bob"}, caller="other", lease_wait_s=30.0)
        )
        await asyncio.sleep(0)
        begun = clock.monotonic()
        waiting = asyncio.create_task(broker.call("at_once", {"value": 1}, caller="late", lease_wait_s=2.0))
        await asyncio.sleep(1.5)
        await broker.cancel(first, "enough")
        second = await overtaking
        with pytest.raises(CallRejectedError) as busy:
            await waiting
        assert busy.value.holder == second
        assert clock.monotonic() - begun == pytest.approx(2.0, abs=0.1)


@pytest.mark.virtual_time
async def test_duplicates() -> None:
    async with scene() as world:
        broker = world.broker
        first = await broker.call("patrol", {}, caller="agent")
        with pytest.raises(CallRejectedError, match=f"runs already as call {first!r}.*'allow' .* or 'replace'"):
            await broker.call("patrol", {}, caller="agent")
        with pytest.raises(CallRejectedError, match="runs already") as refused:
            await broker.call("patrol", {}, caller="agent", on_duplicate="reject")
        assert refused.value.holder == first
        second = await broker.call("patrol", {}, caller="agent", on_duplicate="allow")
        third = await broker.call("patrol", {}, caller="agent", on_duplicate="replace")
        assert [view.call_id for view in await broker.calls(open_only=True)] == [third]
        for old in (first, second):
            view = await broker.view(old)
            assert (view.outcome, view.text) == (
                Outcome.CANCELLED,
                "replaced by another call of 'patrol' (by 'agent')",
            )

        # A replaced call gives its lease to its successor, and never do both run.
        old = await broker.call("follow", {"description": "ann"}, caller="agent")
        both = [
            asyncio.create_task(broker.call("follow", {"description": name}, caller="agent", on_duplicate="replace"))
            for name in ("bob", "cid")
        ]
        ids = [await task for task in both]
        worker = world.processes[1].modules["worker"]
        assert isinstance(worker, Worker)
        await until(lambda: len(worker.running) == 1 and worker.running[0] in ids)
        assert worker.most == 1
        assert (await broker.view(old)).outcome is Outcome.CANCELLED


class Kiln(Module):
    """A kiln that fires one thing to its end."""

    @skill(protected=True)
    async def fire(self) -> None:
        """Fire what is in it."""
        await asyncio.Event().wait()


class Fetcher(Module):
    """It fetches several things at a time, each of them once."""

    @skill(on_duplicate="reject", duplicate_scope="arguments")
    async def fetch(self, what: str) -> None:
        """Fetch something."""
        await asyncio.Event().wait()


@pytest.mark.virtual_time
async def test_where_arguments_count_only_a_call_with_equal_ones_is_a_duplicate() -> None:
    async with scene(worker=False) as world:
        await world.add(Fetcher(name="fetcher"))
        await world.offered("fetch")
        fetching = [await world.broker.call("fetch", {"what": what}, caller="agent") for what in ("tea", "milk")]
        with pytest.raises(CallRejectedError, match="runs already") as refused:
            await world.broker.call("fetch", {"what": "milk"}, caller="agent")
        assert refused.value.holder == fetching[1]


@pytest.mark.virtual_time
async def test_no_call_takes_the_place_of_a_protected_one() -> None:
    async with scene(worker=False) as world:
        broker = world.broker
        await world.add(Kiln(name="kiln"))
        await world.offered("fire")
        firing = await broker.call("fire", {}, caller="you")
        with pytest.raises(CallRejectedError, match="no other call takes the place of one of 'fire'"):
            await broker.call("fire", {}, caller="you", on_duplicate="replace")
        await asyncio.sleep(1.0)
        assert (await broker.view(firing)).state == "open"


@pytest.mark.feature("E2")
@pytest.mark.virtual_time
async def test_what_a_model_may_have_thought_of_replaces_no_call_of_others() -> None:
    async with scene() as world:
        broker = world.broker
        first = await broker.call("patrol", {}, caller="operator")
        own = await broker.call("patrol", {}, caller="mcp/claude", on_duplicate="allow")
        with pytest.raises(CallRejectedError, match="of 'operator', and what a model asks for takes") as refused:
            await broker.call("patrol", {}, caller="mcp/claude", on_duplicate="replace")
        assert refused.value.holder == first
        with pytest.raises(CallRejectedError) as asked:
            await broker.call("patrol", {}, caller="mcp/claude")
        assert "'allow'" in str(asked.value)
        assert "'replace'" not in str(asked.value)
        assert [view.call_id for view in await broker.calls(open_only=True)] == [first, own]
        await broker.cancel(first, "enough")
        await closed(broker, first)
        new = await broker.call("patrol", {}, caller="mcp/claude", on_duplicate="replace")
        assert [view.call_id for view in await broker.calls(open_only=True)] == [new]
        newest = await broker.call("patrol", {}, caller="script", on_duplicate="replace")
        assert [view.call_id for view in await broker.calls(open_only=True)] == [newest]


@pytest.mark.virtual_time
async def test_a_call_that_will_not_end_is_not_replaced() -> None:
    async with scene() as world:
        broker = world.broker
        first = await broker.call("patrol", {}, caller="agent")
        await until(lambda: broker.ledger.calls.open[0].state == "open")
        world.processes[0].bus.faults = Faults(loss=1.0, affects=lambda channel: "cancel" in channel)
        with pytest.raises(CallRejectedError, match="did not end within 10 s") as refused:
            await broker.call("patrol", {}, caller="agent", on_duplicate="replace")
        assert refused.value.holder == first


@pytest.mark.virtual_time
async def test_an_idempotency_key_gives_the_same_call_once() -> None:
    async with scene() as world:
        broker = world.broker

        async def begin(key: str, description: str = "ann", on_loss: OnLoss | None = None) -> str:
            return await broker.call(
                "follow",
                {"description": description},
                caller="agent",
                idempotency_key=key,
                lease_wait_s=1.0,
                on_loss=on_loss,
            )

        ids = await asyncio.gather(*(begin("k1") for _ in range(5)))
        assert len(set(ids)) == 1
        first = rf"^idempotency key 'k1' is that of call '{ids[0]}' of 'follow' "
        with pytest.raises(KeyUsedError, match=rf"{first}\(.*\), which has other arguments; valid is") as used:
            await begin("k1", "bob")
        assert (used.value.call_id, used.value.skill) == (ids[0], "follow")
        with pytest.raises(KeyUsedError, match=rf"{first}.* which has another on_loss"):
            await begin("k1", on_loss="continue")
        with pytest.raises(KeyUsedError, match=rf"{first}.* which is of another skill"):
            await broker.call("at_once", {"value": 1}, caller="agent", idempotency_key="k1")
        refused = await asyncio.gather(*(begin("k2", "bob") for _ in range(3)), return_exceptions=True)
        assert [type(error) for error in refused] == [CallRejectedError] * 3
        await broker.cancel(ids[0], "done")
        assert await begin("k1") == ids[0], "also after its end"
        await closed(broker, ids[0])
        with pytest.raises(KeyUsedError, match=rf"{first}\(closed: cancelled\)") as used:
            await begin("k1", "bob")
        assert used.value.state == "closed"
        assert await begin("k2", "bob") not in ids, "a refused call leaves its key free"
        assert len(broker.ledger.calls.open) == 1
