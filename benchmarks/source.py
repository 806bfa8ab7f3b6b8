"""The module whose updates are measured."""

from __future__ import annotations

import asyncio

from dimos_streams import clock
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill


class Source(Module):
    """Sends numbered updates at a rate, or as fast as it can."""

    @skill
    async def stream(self, call: Call, count: int, rate_hz: float) -> int:
        """Send ``count`` updates; a rate of 0 means without pauses."""
        begin = clock.monotonic()
        for number in range(count):
            if rate_hz > 0:
                await asyncio.sleep(begin + number / rate_hz - clock.monotonic())
            await call.update(str(number), number=number)
        return count
