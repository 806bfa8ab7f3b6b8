"""A fault of asyncio's in Python 3.11.0 to 3.11.2, which Debian 12 has: in a task that was cancelled and goes on to
clean up, a timeout that expires cancels the task once more instead of raising ``TimeoutError``.

Whatever ends in order would be cut off by it, skills of users included, so it is mended for the whole process, as
Python 3.11.3 does it: https://github.com/python/cpython/issues/102780
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any


def mend_timeouts() -> None:
    """Have timeouts remember how often their task was cancelled before they began."""
    timeout: Any = asyncio.Timeout
    enter, leave = timeout.__aenter__, timeout.__aexit__

    async def __aenter__(self: Any) -> Any:
        task = asyncio.current_task()
        self.cancelled_before = 0 if task is None else task.cancelling()
        return await enter(self)

    async def __aexit__(
        self: Any, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        ended: bool | None = await leave(self, kind, error, traceback)
        task = asyncio.current_task()
        is_ours = task is not None and task.cancelling() <= self.cancelled_before
        if is_ours and self.expired() and kind is asyncio.CancelledError:
            raise TimeoutError from error
        return ended

    timeout.__aenter__, timeout.__aexit__ = __aenter__, __aexit__
