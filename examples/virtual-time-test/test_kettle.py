"""Tests of the kettle of ../own-skill. A minute of its time takes none of ours."""

from collections.abc import Callable

import pytest
from kettle import Kettle

from dimos_streams.testing import FaultInjection, MissionRun, ModuleHarness, event


@pytest.mark.virtual_time
async def test_the_water_gets_warm() -> None:
    async with ModuleHarness(Kettle, {"tap_c": 10}) as harness:
        call = await harness.call("boil", litres=1.5)
        assert await call.answer() == "Heating 1.5 litres to 100 °C"
        assert await call.result() == "The water has 102 °C"
        assert len(call.texts("progress")) == 29  # one a second


@pytest.mark.virtual_time
async def test_too_much_water_is_refused_with_a_reason() -> None:
    async with ModuleHarness(Kettle) as harness:
        call = await harness.call("boil", litres=3)
        assert (await call.closed()).text == "3 litres don't fit: the kettle holds 1.7"


async def test_a_call_can_be_cancelled_over_a_bad_network(
    blueprint_run: Callable[..., MissionRun], fault_bus: Callable[..., FaultInjection]
) -> None:
    settings = {"agent.model": "offline"}
    async with blueprint_run("../own-skill/kitchen.yaml", settings=settings, faults=fault_bus(loss=0.2)) as run:
        call = await run.call("boil", litres=1.0)
        await run.until(event("update", skill="boil", text="Heating"), timeout_s=10)
        call.cancel("no tea today")
        assert (await call.closed()).outcome == "cancelled"
