"""Writes a log anew, with the outputs that modules give now."""

from __future__ import annotations

import os
from pathlib import Path

from dimos_streams.recording.writer import LogWriter
from dimos_streams.regression.tolerances import Tolerances

Entry = tuple[int, str, bytes]


class Rewriter:
    """Takes what is to be in the log, not quite in order, and replaces the file in the end."""

    def __init__(self, path: Path, tolerances: Tolerances) -> None:
        self._path = path
        self._late_us = round(tolerances.time_s * 1e6)
        """The time, in µs, by which an event may be added late."""
        self._waiting: list[Entry] = []
        self._writer = LogWriter(path.with_name(f".{path.name}.new"))
        self._opened = False

    def add(self, utime: int, channel: str, data: bytes) -> None:
        """Take an event."""
        self._waiting.append((utime, channel, data))

    def flush(self, now: int) -> None:
        """Write the events that nothing can come before any more."""
        if not self._opened:
            self._opened = True
            self._writer.open()
        self._waiting.sort(key=lambda entry: entry[0])
        ready = 0
        while ready < len(self._waiting) and self._waiting[ready][0] < now - self._late_us:
            self._writer.write(*self._waiting[ready])
            ready += 1
        del self._waiting[:ready]

    def finish(self, *, keep: bool) -> None:
        """Replace the log, or with ``keep`` False leave it as it is."""
        self.flush(1 << 62)
        self._writer.close()
        if keep:
            os.replace(self._writer.path, self._path)
        else:
            self._writer.path.unlink()
