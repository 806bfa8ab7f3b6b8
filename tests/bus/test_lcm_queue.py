"""What LCM's own queue holds, and whether it may have thrown messages away."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm.queue import KEPT_BYTES, LEAST, MOST, LcmQueue
from tests.helpers import until


class Noted:
    """Stands for LCM's subscription."""

    capacity = 0

    def set_queue_capacity(self, capacity: int) -> None:
        self.capacity = capacity


@pytest.mark.slow
def test_it_is_long_for_small_messages_and_short_for_large_ones() -> None:
    noted, passed = Noted(), list[bytes]()
    queue = LcmQueue(lambda channel, data: passed.append(data), lambda: None)
    queue.bound(noted)
    for size, fewest, most in (
        (40, MOST, MOST),
        (60_000, LEAST, 14),
        (1_000_000, LEAST, LEAST),
        (40, MOST // 2, MOST),
    ):
        for _ in range(1000):
            queue.put("/a", bytes(size))
        assert fewest <= noted.capacity <= most, size
    assert len(passed) == 4000


def test_sizes_that_vary_are_taken_to_be_large() -> None:
    noted, chance = Noted(), random.Random(5)
    queue = LcmQueue(lambda channel, data: None, lambda: None)
    queue.bound(noted)
    for number in range(10_000):
        size = 50_000 if chance.random() < 0.1 else 200
        queue.put("/a", bytes(size))
        assert number < 500 or noted.capacity * 5_180 < 2 * KEPT_BYTES, "as many as are kept of such a mixture"


def test_messages_may_be_missed_only_where_as_many_came_as_it_holds() -> None:
    misses: list[int] = []
    passed: list[bytes] = []
    queue = LcmQueue(
        lambda channel, data: passed.append(data), lambda: misses.append(len(passed)), kept_bytes=100_000
    )
    for _ in range(100):
        queue.put("/a", bytes(10_000))
    queue.settle(is_empty=True)
    misses.clear()
    for number in range(30):  # it holds ten to fifteen
        queue.put("/a", bytes(10_000))
        if number % 9 == 8:
            queue.settle(is_empty=True)
    queue.settle(is_empty=True)
    assert misses == []
    for _ in range(15):
        queue.put("/a", bytes(10_000))
        queue.settle(is_empty=False)
    assert len(misses) == 1, "it was never empty in between"


@pytest.mark.usefixtures("lcm_library")
def test_a_loop_that_was_held_up_takes_what_has_come_at_once(bus_url: str) -> None:
    async def taken_at_once() -> int:
        bus = create_bus(bus_url)
        await bus.open()
        heard = bus.subscribe("/small", lambda *_: None)
        bus.publish("/small", b"x")
        await until(lambda: heard.statistics().received == 1)
        for _ in range(2000):
            bus.publish("/small", b"x")
        time.sleep(0.2)  # noqa: ASYNC251 -- it is held up
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        taken = heard.statistics().received
        await until(lambda: heard.statistics().received == 2001)
        await bus.close()
        return taken

    # In a turn that others take the processor from there are fewer; without the longer turn there never are so many.
    assert any(asyncio.run(taken_at_once()) > 500 for _ in range(5))
