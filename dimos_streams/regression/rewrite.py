"""Writes a log anew, with the outputs that modules give now."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from dimos_streams.common.process.disk import real_path
from dimos_streams.errors import cannot_write
from dimos_streams.recording.files.older import claim_all
from dimos_streams.recording.files.whole import file_beside
from dimos_streams.recording.writer import LogWriter
from dimos_streams.regression.tolerances import Tolerances

Entry = tuple[int, str, bytes]


class Rewriter:
    """Takes what is to be in the log, not quite in order, in a file beside it, which replaces it in the end. Use with
    ``with``: unless ``finish`` was called, the log is as it was then, and nothing else is left."""

    def __init__(self, path: Path, tolerances: Tolerances) -> None:
        self._path = path
        self._replaced = real_path(path)
        self._late_us = round(tolerances.time_s * 1e6)
        """The time, in µs, by which an event may be added late."""
        self._waiting: list[Entry] = []
        self._writer: LogWriter
        self._open = contextlib.ExitStack()
        """Lets go of the log, which nobody else writes meanwhile: what a recorder adds to it would be lost."""
        self._failure: OSError | None = None
        """The reason why the disk has taken no more; the replay goes on without it."""

    def __enter__(self) -> Rewriter:
        """Begin the file, which nobody may read who may not read the log. Raises ``UserError``, also if somebody else
        is writing the log, or it is another user's."""
        with contextlib.ExitStack() as opened:
            claim_all([self._path], opened)
            try:
                self._writer = LogWriter(opened.enter_context(file_beside(self._replaced)))
            except OSError as error:
                raise cannot_write(f"log {str(self._path)!r}", error) from error
            self._writer.open()
            self._open = opened.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with contextlib.suppress(OSError):  # what it has not taken it does not take now
            self._writer.close()
        self._open.close()

    def add(self, utime: int, channel: str, data: bytes) -> None:
        """Take an event."""
        self._waiting.append((utime, channel, data))

    def flush(self, now: int) -> None:
        """Write the events that nothing can come before any more."""
        self._waiting.sort(key=lambda entry: entry[0])
        ready = 0
        while ready < len(self._waiting) and self._waiting[ready][0] < now - self._late_us:
            self._write(self._waiting[ready])
            ready += 1
        del self._waiting[:ready]

    def finish(self) -> None:
        """Replace the log. Raises the error of ``cannot_write``, also for what could not be written before."""
        self.flush(1 << 62)
        try:
            self._writer.close()
            if self._failure is not None:
                raise self._failure
            os.replace(self._writer.path, self._replaced)
        except OSError as error:
            raise cannot_write(f"log {str(self._path)!r}", error) from error

    def _write(self, entry: Entry) -> None:
        if self._failure is None:
            try:
                self._writer.write(*entry)
            except OSError as error:
                self._failure = error
