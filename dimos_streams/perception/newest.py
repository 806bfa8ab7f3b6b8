"""A place for one value: the newest wins."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """Hands the newest value from callbacks to one task; `skipped` counts those that nobody took in time."""

    def __init__(self) -> None:
        self._values: list[T] = []
        self._arrived = asyncio.Event()
        self.skipped = 0

    def put(self, value: T) -> None:
        """Replace what is there."""
        self.skipped += len(self._values)
        self._values = [value]
        self._arrived.set()

    async def take(self) -> T:
        """The newest value that was not taken yet; waits for one."""
        while not self._values:
            self._arrived.clear()
            await self._arrived.wait()
        return self._values.pop()
