"""A host that stops in order: what becomes of its calls, on a bus that loses their ends, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.parts import Worker, closed, scene
from tests.helpers import until


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
@pytest.mark.parametrize("modules", [1, 3])
async def test_a_call_that_its_module_ends_in_order_has_its_own_end_though_that_was_lost_at_first(
    modules: int,
) -> None:
    async with scene(worker=False) as world:
        process = await world.add(*(Worker(name=f"worker{n}") for n in range(modules)))
        await until(lambda: len(world.broker.directory.modules()) == modules + 1)
        await world.offered("search")
        call_id = await world.broker.call("search", {}, caller="me")
        await until(lambda: world.broker.ledger.calls.open[0].last_seq > 10)
        stopping = asyncio.create_task(process.host.stop())
        process.bus.faults = Faults(loss=1.0)
        await asyncio.sleep(0.05)
        process.bus.faults = Faults()
        await stopping
        view = await closed(world.broker, call_id)
        assert (view.outcome, view.text) == (Outcome.CANCELLED, "the module is stopping")


@pytest.mark.virtual_time
@pytest.mark.feature("A6")
async def test_modules_that_nobody_hears_wait_together_no_longer_than_one() -> None:
    async with scene(worker=False) as world:
        process = await world.add(*(Worker(name=f"worker{n}") for n in range(4)))
        await world.offered("search")
        await world.broker.call("search", {}, caller="me")
        await until(lambda: world.broker.ledger.calls.open[0].last_seq > 10)
        process.bus.faults = Faults(loss=1.0)
        began = clock.monotonic()
        await process.host.stop()
        assert clock.monotonic() - began < 0.5
