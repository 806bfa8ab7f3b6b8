"""Places that clients share: how many commands of all clients are carried out at a time, and whose is next."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator


class FairPlaces:
    """A fair semaphore. A place that gets free goes to the waiting client that holds the fewest, and among equals to
    the one that has waited longest. So each other client delays a client's only command by one of its own at most,
    however many it has. Use from the loop only."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._held = Counter[object]()
        """The number of places that each client holds."""
        self._waiting: dict[asyncio.Future[None], object] = {}
        """The clients that wait, longest first, one entry for each command. While one waits, no place is free."""

    @contextlib.asynccontextmanager
    async def place(self, client: object) -> AsyncIterator[None]:
        """Wait for a place, and hold it for a client."""
        await self._take(client)
        try:
            yield
        finally:
            self._give_back(client)

    async def _take(self, client: object) -> None:
        if self._free:
            self._free -= 1
            self._held[client] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = client
        try:
            await turn
        except asyncio.CancelledError:
            if self._waiting.pop(turn, None) is None:  # it was given a place in the same turn of the loop
                self._give_back(client)
            raise

    def _give_back(self, client: object) -> None:
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        waiting = [turn for turn in self._waiting if not turn.done()]  # one that was cancelled has yet to learn of it
        if not waiting:
            self._free += 1
            return
        turn = min(waiting, key=lambda turn: self._held[self._waiting[turn]])
        self._held[self._waiting.pop(turn)] += 1
        turn.set_result(None)
