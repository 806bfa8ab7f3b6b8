"""Tasks that nobody needs any more: they are cancelled, and waited for until they have ended."""

from __future__ import annotations

import asyncio
from typing import Any


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
