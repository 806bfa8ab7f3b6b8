"""Items on their way from a thread to a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from dimos_streams.client.event_stream.handoff import Handoff
from tests.helpers import until


def test_who_waits_is_woken_each_time() -> None:
    async def work() -> None:
        handoff: Handoff[int] = Handoff(asyncio.get_running_loop())
        for number in range(3):
            waiting = asyncio.create_task(handoff.batch())
            await asyncio.sleep(0)
            handoff.put([number])
            async with asyncio.timeout(10.0):
                assert await waiting == [number]

    asyncio.run(work())


def test_what_came_before_the_end_is_taken_before_its_error() -> None:
    async def work() -> None:
        handoff: Handoff[int] = Handoff(asyncio.get_running_loop())
        handoff.put([1, 2])
        handoff.end(OSError("the end"))
        await handoff.ended()
        assert await handoff.batch() == [1, 2]
        with pytest.raises(OSError, match="the end"):
            await handoff.batch()

    asyncio.run(work())


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_thread_waits_for_room_until_there_is_some_or_nobody_takes_any_more(is_closed: bool) -> None:
    async def work() -> None:
        handoff: Handoff[int] = Handoff(asyncio.get_running_loop(), capacity=2)
        assert handoff.put_here([1])
        assert not handoff.put_here([2])
        waiting = asyncio.create_task(asyncio.to_thread(handoff.put, [3]))
        await until(lambda: handoff._wants_room)
        async with asyncio.timeout(10.0):
            if is_closed:
                handoff.close()
                await waiting
                assert handoff.put_here([4]), "whoever puts something is not held up any more"
            else:
                assert await handoff.batch() == [1, 2]
                await waiting
                assert await handoff.batch() == [3]

    asyncio.run(work())


def test_a_thread_does_not_wait_if_the_end_came_while_it_put_something() -> None:
    async def work() -> None:
        handoff: Handoff[int] = Handoff(asyncio.get_running_loop(), capacity=2)

        class ClosedMeanwhile(list[int]):
            def __iter__(self) -> Iterator[int]:
                handoff.close()
                return super().__iter__()

        handoff.put(ClosedMeanwhile([1, 2]))
        waiting = asyncio.create_task(asyncio.to_thread(handoff.put, [3]))
        try:
            async with asyncio.timeout(10.0):
                await asyncio.shield(waiting)
        finally:
            handoff._items.clear()
            handoff.close()

    asyncio.run(work())
