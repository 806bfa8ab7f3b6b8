"""The failure of a run."""

from __future__ import annotations

import asyncio

from dimos_streams.errors import DimosStreamsError


class RunFailure:
    """The error that makes a run fail, once there is one; the first counts."""

    def __init__(self) -> None:
        self._error: DimosStreamsError | None = None
        self._is_there = asyncio.Event()

    def set(self, error: DimosStreamsError) -> None:
        """Let the run fail, unless it has failed already."""
        if self._error is None:
            self._error = error
            self._is_there.set()

    def check(self) -> None:
        """Raise the error if there is one."""
        if self._error is not None:
            raise self._error

    async def wait(self) -> None:
        """Wait for the error, and raise it."""
        await self._is_there.wait()
        self.check()
