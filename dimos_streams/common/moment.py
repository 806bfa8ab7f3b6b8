"""Something that happens once, and that may be waited for."""

from __future__ import annotations

import asyncio


class Moment:
    """An ``asyncio.Event`` that is never cleared, at a tenth of its size as long as nobody waits for it."""

    __slots__ = ("_happened", "_waited")

    def __init__(self) -> None:
        self._happened = False
        self._waited: asyncio.Event | None = None

    def set(self) -> None:
        """Let it have happened. Twice is fine."""
        self._happened = True
        if self._waited is not None:
            self._waited.set()
            self._waited = None

    def is_set(self) -> bool:
        """Return whether it has happened."""
        return self._happened

    async def wait(self) -> None:
        """Wait until it has happened."""
        if not self._happened:
            self._waited = self._waited or asyncio.Event()
            await self._waited.wait()
