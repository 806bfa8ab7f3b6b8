"""What several test files share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dimos_streams.clock import run_virtual

__all__ = ["run_virtual", "until"]


async def until(condition: Callable[[], object], timeout_s: float = 15.0) -> None:
    """Wait until a condition holds that nobody signals. Raises ``TimeoutError`` after ``timeout_s``."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
