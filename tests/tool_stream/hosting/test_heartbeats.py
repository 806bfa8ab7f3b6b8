"""What heartbeats say of a module, in its real host over a memory bus: its skills, its state, its end."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.heartbeat import stop_reason
from dimos_streams.tool_stream.protocol.channels import REQUESTS, STATUS
from tests.tool_stream.hosting.test_host import Counter


def descriptions(harness: ModuleHarness) -> list[float]:
    """When skills are described, from now on."""
    described: list[float] = []

    def note(channel: str, data: bytes) -> None:
        if decode(ModuleStatus, data, channel=channel).skills_json:
            described.append(clock.monotonic())

    harness.bus.subscribe(STATUS, note)
    return described


@pytest.mark.virtual_time
async def test_who_asks_for_skills_just_after_another_gets_them_soon() -> None:
    async with ModuleHarness(Counter, name="counter") as harness:
        await asyncio.sleep(1.0)
        described = descriptions(harness)
        began = clock.monotonic()
        for _ in range(3):
            harness.bus.publish(REQUESTS, encode(ToolStreamRequest(kind="describe")))
            await asyncio.sleep(0.02)
        await asyncio.sleep(1.0)
        assert described == pytest.approx([began, began + 0.1], abs=0.01), "two of them together"


@pytest.mark.virtual_time
async def test_where_many_ask_all_the_time_skills_are_described_ever_more_seldom_within_a_bound() -> None:
    async with ModuleHarness(Counter, name="counter") as harness:
        await asyncio.sleep(1.0)
        described = descriptions(harness)
        for _ in range(250):
            harness.bus.publish(REQUESTS, encode(ToolStreamRequest(kind="describe")))
            await asyncio.sleep(0.005 if len(described) < 3 else 0.02)
        pauses = [later - earlier for earlier, later in itertools.pairwise(described)]
        assert pauses == pytest.approx([0.1, 0.2, 0.4, *[0.8] * (len(pauses) - 3)], abs=0.02)
        assert len(pauses) >= 6


@pytest.mark.virtual_time
@pytest.mark.feature("C4")
async def test_what_a_module_says_of_its_state_is_sent_at_once_and_with_each_heartbeat() -> None:
    async with ModuleHarness(Counter, name="counter") as harness:
        directory = ModuleDirectory(harness.bus)
        directory.start()
        heard: list[ModuleStatus] = []
        directory.listen(heard.append)
        await asyncio.sleep(0.3)
        heard.clear()
        harness.module.report_state({"gate": {"open": True}})
        harness.module.report_state({"gate": {"open": True}})
        await asyncio.sleep(0)
        assert [status.state_json for status in heard] == ['{"gate":{"open":true}}'], "once"
        view = directory.module("counter")
        assert view is not None
        assert view.state == {"gate": {"open": True}}
        await asyncio.sleep(1.0)
        assert {status.state_json for status in heard} == {'{"gate":{"open":true}}'}
        assert len(heard) >= 4
        with pytest.raises(ValueError, match="the state of module 'counter' has 5008 bytes, 4000 are possible"):
            harness.module.report_state({"x": "y" * 5000})
        with pytest.raises(ValueError, match="has 4008 bytes, 4000 are possible"):
            harness.module.report_state({"x": "ö" * 2000})
        with pytest.raises(ValueError, match="not JSON compliant"):
            harness.module.report_state({"x": float("nan")})
        with pytest.raises(ValueError, match=r"the state of module 'counter' has no JSON form: .* \(x.0: nan\)"):
            harness.module.report_state({"x": [float("nan")]})
        with pytest.raises(ValueError, match=r"has no JSON form: .* \(at x\)"):
            harness.module.report_state({"x": object()})
        with pytest.raises(TypeError, match=r"^the state of module 'counter' can't be \[1\]: report values"):
            harness.module.report_state([1])  # type: ignore[arg-type]
        harness.module.report_state({})
        await asyncio.sleep(0)
        assert heard[-1].state_json == ""
        directory.stop()


@pytest.mark.virtual_time
@pytest.mark.parametrize("word", ["ended", "stopping", "stopping: for lunch"])
async def test_a_module_that_says_of_itself_that_it_stops_does_not_stop(word: str) -> None:
    async with ModuleHarness(Counter) as harness:
        directory = ModuleDirectory(harness.bus)
        directory.start()
        harness.module.health = word
        await asyncio.sleep(1.0)
        view = directory.module(harness.module.name)
        assert view is not None
        assert (view.alive, view.health) == (True, f'"{word}"')
        assert stop_reason(view.health) is None
        directory.stop()


@pytest.mark.virtual_time
@pytest.mark.parametrize("bad", ["{", "[]", "3", '{"x": NaN}', '{"x": "' + "y" * 5000 + '"}', "[" * 3000])
async def test_a_state_that_can_not_be_read_is_counted_and_says_nothing(bad: str) -> None:
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    for text in ('{"gate": 1}', bad):
        bus.publish(STATUS, encode(ModuleStatus(module="m", instance="1", health="ok", state_json=text)))
        await asyncio.sleep(0)
    (view,) = directory.modules()
    assert (view.state, view.health, directory.malformed) == ({}, "ok", 1)
    directory.stop()
    await bus.close()
