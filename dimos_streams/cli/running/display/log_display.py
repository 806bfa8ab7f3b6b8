"""The display of what the processes of a run log, beside what the run itself shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from dimos_streams.cli.terminal.log_files import LOOK_EVERY_S, LogLine, RunLogs


class LogDisplay:
    """A reader of the run's log files as they grow, which shows each line once.

    It shows the files, so that lines of a process that is killed are seen, too, and `logs` goes on working.
    """

    def __init__(self, run_dir: Path, show: Callable[[LogLine], None]) -> None:
        self._logs = RunLogs(run_dir, None)
        self._show = show
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on, several times a second; to be called on the loop."""
        self._looking = asyncio.create_task(self._look(), name="log display")

    def stop(self) -> None:
        """Show what is left, and look no more. Stopping twice is fine."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
            self._show_new(is_over=True)

    async def _look(self) -> None:
        while True:
            self._show_new()
            await asyncio.sleep(LOOK_EVERY_S)

    def _show_new(self, *, is_over: bool = False) -> None:
        for line in self._logs.new_lines(is_over=is_over):
            self._show(line)
