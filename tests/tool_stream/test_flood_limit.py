"""How many limited messages are wanted in a flood; the bus in memory gives all of them."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.bus.subscription import Mark, Ration
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.flood_limit import MARK_BYTES, MAX_MARKS, FloodLimit
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from tests.hostile.test_forged_events import event
from tests.tool_stream.liveness.test_instances import two_walkers


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_the_share_is_what_makes_so_many_a_second_of_a_flood_and_ends_with_it() -> None:
    bus = create_bus("memq://")
    await bus.open()
    subscription = bus.subscribe("/a", lambda channel, data: None)
    marks = [Mark(number, b"m") for number in range(MAX_MARKS)]
    limit = FloodLimit(100.0, lambda: marks)
    limit.watch(subscription)

    async def second(rate: int) -> Ration | None:
        """So many limited messages, and one of somebody known."""
        for _ in range(rate):
            limit.came(limited=True)
        await asyncio.sleep(1.0)
        limit.came(limited=False)
        return subscription.ration

    assert await second(100) is None
    assert await second(101) == Ration(0.5, tuple(marks))
    shares = [ration and ration.share for ration in [await second(rate) for rate in (100, 50, 400, 100, 100_000, 0)]]
    assert shares == [0.5, None, 0.25, 0.25, 1 / 64, None]
    marks.append(Mark(MAX_MARKS, b"m"))
    assert await second(100_000) is None, "one of those who are known would be left to chance"
    marks.clear()
    assert await second(100_000) is None
    await bus.close()


@pytest.mark.virtual_time
async def test_no_more_of_them_come_than_are_handled() -> None:
    bus = create_bus("memq://")
    await bus.open()
    subscription = bus.subscribe("/a", lambda channel, data: None, capacity=1)
    limit = FloodLimit(1600.0, lambda: [Mark(0, b"m")])
    limit.watch(subscription)

    async def second(rate: int, *, overflow: bool) -> float:
        """So many limited messages, and others for which there was no room; the share of them that is taken."""
        for _ in range(rate):
            limit.came(limited=True)
        for _ in range(2 if overflow else 0):
            bus.publish("/a", b"x")
        await asyncio.sleep(1.0)
        limit.came(limited=True)
        return subscription.ration.share if subscription.ration is not None else 1.0

    assert await second(1000, overflow=False) == 1.0
    assert await second(999, overflow=True) == 0.5
    assert await second(499, overflow=False) == 0.5, "all of them would be too many again"
    assert await second(499, overflow=True) == 0.25
    assert await second(50, overflow=False) == 1.0, "the flood is over"
    assert await second(50, overflow=True) == 1.0, "so few are no flood, whatever else there was no room for"
    await bus.close()


@pytest.mark.virtual_time
async def test_what_there_was_no_room_for_was_a_part_of_the_flood_and_quiet_hours_allow_no_larger_one() -> None:
    bus = create_bus("memq://")
    await bus.open()
    subscription = bus.subscribe("/a", lambda channel, data: None, capacity=1)
    limit = FloodLimit(16.0, lambda: [Mark(0, b"m")])
    limit.watch(subscription)
    for _ in range(100):
        await asyncio.sleep(1.0)
        limit.came(limited=False)
    for _ in range(17):
        limit.came(limited=True)
    await asyncio.sleep(1.0)
    limit.came(limited=False)
    assert subscription.ration is not None
    assert subscription.ration.share == 0.5
    for _ in range(200):
        bus.publish("/a", b"x")
    for _ in range(8):
        limit.came(limited=True)
    await asyncio.sleep(1.0)
    limit.came(limited=False)
    assert subscription.ration.share == 1 / 64
    await bus.close()


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_heartbeats_of_who_has_spoken_for_long_bear_marks() -> None:
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    real = encode(ModuleStatus(module="real", instance="an instance that is known", health="ok"))
    for _ in range(20):
        bus.publish(STATUS, real)
        for number in range(500):
            bus.publish(STATUS, encode(ModuleStatus(module="real", instance=f"forged{number}")))
        await asyncio.sleep(0.25)
    (subscription,) = (each for each in bus.subscriptions() if each.ration is not None)
    assert subscription.ration is not None
    (mark,) = subscription.ration.marks
    assert real[mark.at : mark.at + MARK_BYTES] == mark.value
    for _ in range(8):
        bus.publish(STATUS, real)
        await asyncio.sleep(0.25)
    assert subscription.ration is None, "the flood is over"
    directory.stop()
    await bus.close()


@pytest.mark.virtual_time
async def test_events_of_instances_that_have_spoken_for_long_bear_marks() -> None:
    async with two_walkers() as (broker, _, _):
        await asyncio.sleep(2.0)
        real: list[bytes] = []
        broker.bus.subscribe(EVENTS, lambda channel, data: real.append(data))
        call_id = await broker.call("walk", {"seconds": 3.0}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        (first, *_) = real
        for _ in range(1500):
            broker.bus.publish(EVENTS, event(call_id, 3))
            await asyncio.sleep(0.0015)
        (ration,) = (each.ration for each in broker.bus.subscriptions() if each.ration is not None)
        assert ration is not None
        assert ration.share < 1
        assert any(first[mark.at :] == mark.value for mark in ration.marks)
