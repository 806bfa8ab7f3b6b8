"""Turns for the clients of a recording's clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dimos_streams import clock
from dimos_streams.viewer.stage import Stage

_SHORTEST_S, _LONGEST_S = 0.005, 1.0


class Desk:
    """Hears one client at a time, in the order in which they come. Going to a moment takes a while, in which nobody
    else is served, so each turn is followed by as much time without any. All clients together thus take half of the
    loop's time at most, and a client with a hundred commands has only one served before that of another client.

    Use from one loop only.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._heard = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Stage]:
        """The stage, for the time of the block; leaving it takes as long as the block has."""
        async with self._heard:
            began = clock.monotonic()
            try:
                yield self.stage
            finally:
                took = clock.monotonic() - began
                await asyncio.sleep(min(_LONGEST_S, max(_SHORTEST_S, took)))
