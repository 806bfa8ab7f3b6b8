"""Helpers for asyncio tasks: tasks with an owner, the end of tasks, waits with a limit, and work that must not delay
its caller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class OwnedTasks:
    """Tasks of one owner whose results nobody asks for. Each is kept for as long as it runs, and an error by which it
    ends is logged as a defect. Whoever spawns them bounds how many there are."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        """Those that run, in the order of their beginning."""
        return iter(tuple(self._tasks))

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Begin a task on the running loop."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        task.add_done_callback(report_defect)
        return task

    async def end(self) -> None:
        """Cancel all that run and wait for them, as ``end_tasks_silently`` does. Twice is fine."""
        await end_tasks_silently(*self)


async def end_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for them. The error of one that nobody asks for its result is logged by asyncio.

    Whoever is cancelled meanwhile waits no longer.
    """
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


async def end_tasks_silently(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks whose errors are known, or concern nobody, and wait for them: nothing is logged.

    Whoever is cancelled meanwhile waits all the same, and the tasks are cancelled once more.
    """
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def first_of(task: asyncio.Future[Any], event: asyncio.Event) -> None:
    """Wait until a task is done or an event is set."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def ends_within(bound_s: float | None, work: Awaitable[object]) -> bool:
    """Wait for work, and return whether it ended within the seconds, or within any time for None. Raises what it
    raises, a ``TimeoutError`` of its own too."""
    bound = asyncio.timeout(bound_s)
    try:
        async with bound:
            await work
    except TimeoutError:
        if not bound.expired():
            raise
        return False
    return True


async def apart(work: Coroutine[Any, Any, T], *, name: str) -> T:
    """Do work in a task of its own and return its result; raises what it raises, and ``RuntimeError`` if it was
    cancelled though its waiter was not. Whoever is cancelled meanwhile cancels it and waits no longer, even if it
    swallows that."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
    if task.cancelled():
        raise stray_cancellation(name)
    return task.result()


async def outlasting(task: asyncio.Task[T]) -> T:
    """Wait for a task and return its result; raises what it raises. Whoever is cancelled meanwhile waits no longer,
    and the task goes on: an error by which it ends then is logged in a line, with its name."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_note_unheard)
        raise


def _note_unheard(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.warning("%s, for which nobody waits any more, failed: %s", task.get_name(), error)


def is_stray(error: BaseException) -> bool:
    """Return whether an error is a cancellation although nobody has asked the running task to end."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and not task.cancelling()


def stray_cancellation(name: str) -> RuntimeError:
    """Return the error of work that ended as cancelled although nobody had asked it to end."""
    return RuntimeError(
        f"{name} ended because something that it awaited was cancelled: await what you have cancelled within "
        "`with contextlib.suppress(asyncio.CancelledError)`"
    )


def report_defect(task: asyncio.Task[Any]) -> None:
    """Log the error by which a task has ended; a callback for tasks whose result nobody asks for."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.error("the task %r has a defect and ends; the run goes on", task.get_name(), exc_info=error)
