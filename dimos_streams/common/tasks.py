"""Tasks that nobody needs any more, which are cancelled and waited for, and those that nobody waits for."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

_logger = logging.getLogger(__name__)


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


def report_defect(task: asyncio.Task[Any]) -> None:
    """Log the error by which a task has ended; a callback for tasks whose result nobody asks for."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.error("the task %r has a defect and ends; the run goes on", task.get_name(), exc_info=error)
