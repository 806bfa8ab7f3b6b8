"""The queue of one consumer of an input."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from dimos_streams.messages.base import LcmStruct

T = TypeVar("T", bound=LcmStruct)


class Reader(Generic[T]):
    """One consumer's own bounded queue on an input. When it is full, it drops the oldest message."""

    def __init__(self, capacity: int) -> None:
        self._queue: deque[T] = deque(maxlen=capacity)
        self._arrived = asyncio.Event()
        self.dropped = 0

    def push(self, message: T) -> None:
        """Queue one message; for ``In``."""
        if len(self._queue) == self._queue.maxlen:
            self.dropped += 1
        self._queue.append(message)
        self._arrived.set()

    async def next(self) -> T:
        """Return the oldest message that was not taken yet; wait for one if there is none."""
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        return self._queue.popleft()
