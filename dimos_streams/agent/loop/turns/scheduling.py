"""The order in which the calls of one answer run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from dimos_streams.common.tasks import end_tasks_silently

T = TypeVar("T")
R = TypeVar("R")


def groups(calls: Iterable[T], concurrent: Callable[[T], bool]) -> list[list[T]]:
    """Return neighbours that may run at once together, every other call alone, all in the order of the calls.

    So a sensing call never overtakes a motion that was asked for before it.
    """
    found: list[list[T]] = []
    joining = False
    for call in calls:
        safe = concurrent(call)
        if safe and joining:
            found[-1].append(call)
        else:
            found.append([call])
        joining = safe
    return found


async def run_in_order(
    groups: Sequence[Sequence[T]],
    run: Callable[[T], Awaitable[R]],
    done: Callable[[T, R], None],
    *,
    cap: int,
) -> list[R]:
    """Run group after group, within a group at most ``cap`` calls at once; return the results.

    ``done`` is called with each result in the order of the calls, as soon as those before it are there. Cancelling
    this cancels all calls that run, at once; so does an error of one of them, which is raised when they have ended.
    """
    results: list[R] = []

    def note_result(call: T, result: R) -> None:
        results.append(result)
        done(call, result)

    for group in groups:
        if len(group) == 1:
            note_result(group[0], await run(group[0]))
        else:
            await _run_together(group, run, note_result, cap)
    return results


async def _run_together(
    group: Sequence[T], run: Callable[[T], Awaitable[R]], note_result: Callable[[T, R], None], cap: int
) -> None:
    free = asyncio.Semaphore(cap)
    finished: dict[int, R] = {}
    taken = 0

    async def run_one(index: int) -> None:
        nonlocal taken
        async with free:
            finished[index] = await run(group[index])
        while taken in finished:
            result = finished.pop(taken)
            taken += 1
            note_result(group[taken - 1], result)

    tasks = [asyncio.ensure_future(run_one(index)) for index in range(len(group))]
    try:
        # Not a TaskGroup: that cancels its tasks a step later than it is cancelled itself.
        await asyncio.gather(*tasks)
    except BaseException:
        await end_tasks_silently(*tasks)
        raise
