"""The module whose updates are measured, and the pace at which things are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from dimos_streams import clock
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill


async def paced(count: int, rate_hz: float) -> AsyncIterator[int]:
    """The numbers 0 to ``count`` - 1 at a rate; a rate of 0 means without pauses."""
    begin = clock.monotonic()
    for number in range(count):
        if rate_hz > 0:
            await asyncio.sleep(begin + number / rate_hz - clock.monotonic())
        yield number


class Source(Module):
    """Sends numbered updates."""

    @skill
    async def stream(self, call: Call, count: int, rate_hz: float, size: int = 0) -> int:
        """Send ``count`` updates, each with ``size`` characters more than it needs."""
        padding = "x" * size
        async for number in paced(count, rate_hz):
            await call.update(padding, number=number)
        return count
