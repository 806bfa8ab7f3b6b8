"""A coroutine run to its end on a loop of its own, which ends with it: what does not end with the loop is named, and
left alone after a bound."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dimos_streams.common.process import given_up
from dimos_streams.common.waiting import where_they_are, who_waits
from dimos_streams.errors import DimosStreamsError, UnendingError

T = TypeVar("T")

_ENDING = "ending of the loop"
_LOOK_AGAIN_S = 0.001

_logger = logging.getLogger(__name__)


def run_bounded(
    main: Coroutine[Any, Any, T],
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    bound_s: float,
    *,
    executor: ThreadPoolExecutor | None = None,
) -> T:
    """Run a coroutine to its end, as ``asyncio.run`` does, on a loop of its own with an executor for what blocks.

    Tasks that are left are cancelled. Those that have not ended after ``bound_s`` of the loop's time, and threads of
    the executor that have not, make it raise ``UnendingError``; if ``main`` raised something itself, they are logged.
    """
    loop = new_loop()
    if executor is not None:
        loop.set_default_executor(executor)
    runner = asyncio.Runner(loop_factory=lambda: loop)
    try:
        result = runner.run(main)
    except BaseException:
        if left := _close(runner, loop, bound_s, executor):
            _logger.error("%s", UnendingError(left, bound_s))
        raise
    if left := _close(runner, loop, bound_s, executor):
        raise UnendingError(left, bound_s)
    return result


def _close(
    runner: asyncio.Runner, loop: asyncio.AbstractEventLoop, bound_s: float, executor: ThreadPoolExecutor | None
) -> list[str]:
    """Close a loop within a bound; return a line for each task and each thread that it has given up."""
    left: list[str] = []
    if asyncio.all_tasks(loop) or (executor is not None and executor._threads):
        ending = loop.create_task(_end(bound_s, executor), name=_ENDING)
        try:
            loop.run_until_complete(ending)
        except DimosStreamsError as error:  # virtual time that is over, or stands still
            _logger.debug("the loop could not be closed in order: %s", error)
        left = [*who_waits(loop, without=ending), *_give_up(asyncio.all_tasks(loop), executor)]
    if not left:
        runner.close()
    loop.close()
    return left


async def _end(bound_s: float, executor: ThreadPoolExecutor | None) -> None:
    """End tasks, generators and threads, in this order, as far as each can be ended within the bound."""
    loop = asyncio.get_running_loop()
    until = loop.time() + bound_s
    while (others := asyncio.all_tasks() - {asyncio.current_task()}) and loop.time() < until:
        for task in others:
            task.cancel()
        await asyncio.wait(others, timeout=until - loop.time())
    if not others:
        await asyncio.wait([loop.create_task(loop.shutdown_asyncgens())], timeout=bound_s)
    if executor is not None:
        executor.shutdown(wait=False)
        until = loop.time() + bound_s
        # The loop goes on meanwhile: what they still say goes over it.
        while any(thread.is_alive() for thread in executor._threads) and loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_AGAIN_S)


def _give_up(tasks: Collection[asyncio.Task[Any]], executor: ThreadPoolExecutor | None) -> list[str]:
    """Wait no more for tasks and the executor's threads; return a line for each of the threads."""
    for task in tasks:
        given_up.never_collect(task)
    threads = [] if executor is None else [thread for thread in executor._threads if thread.is_alive()]
    given_up.threads += threads
    return where_they_are(threads)
