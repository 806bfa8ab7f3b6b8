"""The lock on the playback of a recording, which its clients hold in turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dimos_streams import clock
from dimos_streams.viewer.playback import Playback

_SHORTEST_S, _LONGEST_S = 0.005, 1.0


class PlaybackLock:
    """A fair lock on a playback: one client at a time has it, in the order in which they asked.

    Going to a moment takes a while, in which the loop serves nobody else. So each turn is followed by as much time
    without any, and all clients together take half of the loop's time at most. A client with a hundred commands has
    only one carried out before that of another client. Use from one loop only.
    """

    def __init__(self, playback: Playback) -> None:
        self.playback = playback
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Playback]:
        """Have the playback for the time of the block; leaving it takes as long as the block has."""
        async with self._lock:
            began = clock.monotonic()
            try:
                yield self.playback
            finally:
                took = clock.monotonic() - began
                await asyncio.sleep(min(_LONGEST_S, max(_SHORTEST_S, took)))
