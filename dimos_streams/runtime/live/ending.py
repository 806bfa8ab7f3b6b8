"""The order in which the processes of a run end: robots side by side, all within one bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from dimos_streams.runtime.live.slots import Slot

IN_ORDER_S = 5.0
"""Maximum time, in seconds, that processes wait for each other; then all that are left end at once."""


async def end_all(slots: Sequence[Slot], end: Callable[[Slot], Awaitable[None]]) -> None:
    """End all processes, given in the order of their start: each after those that were started later, but no robot
    (namespace) waits for another one's."""
    hurried = asyncio.get_running_loop().create_future()
    hurrying = asyncio.get_running_loop().call_later(IN_ORDER_S, hurried.set_result, None)
    ending: list[tuple[Slot, asyncio.Task[None]]] = []

    async def end_after(slot: Slot, later: Sequence[asyncio.Task[None]]) -> None:
        if later:
            ended = asyncio.ensure_future(asyncio.wait(later))
            await asyncio.wait([ended, hurried], return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
        await end(slot)

    try:
        async with asyncio.TaskGroup() as group:
            for slot in reversed(slots):
                later = [task for other, task in ending if not _are_apart(slot, other)]
                ending.append((slot, group.create_task(end_after(slot, later))))
    finally:
        hurrying.cancel()


def _are_apart(one: Slot, other: Slot) -> bool:
    return "" not in (one.plan.robot, other.plan.robot) and one.plan.robot != other.plan.robot
