"""The file of the stopped robots, written beside everything else: a disk that hangs keeps nobody waiting for long."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from dimos_streams.bridge.calls.stops import stop_state
from dimos_streams.bridge.calls.stops.stop_state import StopState
from dimos_streams.common.process.disk import trouble_with
from dimos_streams.common.process.threads import in_own_thread
from dimos_streams.common.tasks import end_tasks, report_defect

_AGAIN_S = 2.0
_logger = logging.getLogger(__name__)


class StopFile:
    """Writes the newest state, one writing after the other, and again until the disk takes it. Use from one loop
    only."""

    def __init__(self, path: Path | None) -> None:
        """Without a ``path`` nothing is kept."""
        self._path = path
        self._state = StopState()
        self._asked = self._written = 0
        """The numbers of the newest state, and of the newest one that was written, or could not be."""
        self._problem = ""
        self._doubt = ""
        self._progress = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None

    def load(self) -> StopState:
        """Return what an earlier life of the bridge has written."""
        return StopState() if self._path is None else stop_state.load(self._path)

    async def probe(self) -> None:
        """Find out whether a stop may have been lost: where nothing can be written when the bridge begins, its
        predecessor may not even have been able to leave a sign of an order."""
        if self._path is None:
            return
        try:
            self._doubt = await in_own_thread(trouble_with, self._path.parent)
        except OSError as error:  # there is no thread: `trouble_with` itself raises none
            self._doubt = error.strerror or str(error)

    def lost(self) -> list[str]:
        """Return what is lost, or may have been, for operators."""
        unwritten = [f"orders to stop and release, at the bridge's end: {self._problem}"] if self._problem else []
        doubt = "perhaps stops from before the bridge began: nothing could be written then"
        return [*unwritten, *([f"{doubt} ({self._doubt})"] if self._doubt else [])]

    async def keep(self, state: StopState, within_s: float) -> str:
        """Have a state written; return why it is not, empty if it is.

        Waits ``within_s`` at most; the state is written all the same once the disk takes it, or a newer one in its
        place.
        """
        if self._path is None:
            return ""
        self._state, self._asked = state, self._asked + 1
        mine = self._asked
        self._begin_writing(self._path)
        try:
            async with asyncio.timeout(within_s):
                while self._written < mine:
                    await self._progress.wait()
        except TimeoutError:
            return f"{self._path} has not been written within {within_s:g} s"
        return self._problem

    async def close(self) -> None:
        """Wait for no disk any more. Twice is fine."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await end_tasks(writing)
        self._cancel_again()

    def _begin_writing(self, path: Path) -> None:
        self._cancel_again()
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write(path), name="stop file")
            self._writing.add_done_callback(report_defect)

    def _cancel_again(self) -> None:
        again, self._again = self._again, None
        if again is not None:
            again.cancel()

    def _write_again(self, path: Path) -> None:
        self._asked += 1
        self._begin_writing(path)

    async def _write(self, path: Path) -> None:
        while self._written < self._asked:
            number = self._asked
            problem = await self._saved(path)
            if problem and problem != self._problem:
                _logger.error("which robots are stopped is not kept, and written as soon as it can be: %s", problem)
            self._problem = problem
            self._doubt = self._doubt if self._problem else ""  # whoever gives an order now knows what holds
            self._written = number
            self._progress.set()
            self._progress.clear()
        if self._problem:
            self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self._write_again, path)

    async def _saved(self, path: Path) -> str:
        """Write the newest state; return why that was not possible, empty if it was."""
        try:
            return await in_own_thread(stop_state.save, path, self._state)
        except OSError as error:  # there is no thread: `save` itself raises none
            return f"{path} can't be written: {error.strerror}"
