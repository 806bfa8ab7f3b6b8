"""Reports of a worker to its supervisor: lines of JSON on a pipe, on which neither waits for the other."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any

from dimos_streams.common.json.reading import parse_json

Report = dict[str, Any]

_MOST_UNSENT = 1 << 20
"""The most bytes that wait for a supervisor that does not read."""
_AT_ONCE = 1 << 16


class ReportWriter:
    """A worker's end."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._unsent = bytearray()

    def send(self, report: Mapping[str, Any]) -> None:
        """Send a report, or as much of it as there is room for, and the rest with the next.

        Raises ``BufferError``, and drops the report, if the supervisor has not read for very long, and ``OSError`` if
        it has gone.
        """
        line = json.dumps(report).encode() + b"\n"
        if len(self._unsent) + len(line) > _MOST_UNSENT:
            raise BufferError(f"{len(self._unsent)} bytes wait for a supervisor that does not read")
        self._unsent += line
        self.flush()

    def flush(self) -> bool:
        """Send what there was no room for; return whether nothing is left. Raises ``OSError`` as ``send`` does."""
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[: os.write(self._pipe.fileno(), self._unsent)]
        return not self._unsent


class ReportReader:
    """A supervisor's end, which it makes non-blocking."""

    def __init__(self, pipe: Connection) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._begun = b""

    def read(self) -> Iterator[Report]:
        """Yield the reports that have come whole. Raises ``EOFError`` behind them if no more can come, ``OSError`` if
        the pipe is broken."""
        while True:
            try:
                chunk = os.read(self._pipe.fileno(), _AT_ONCE)
            except BlockingIOError:
                return
            if not chunk:
                raise EOFError
            *lines, self._begun = (self._begun + chunk).split(b"\n")
            yield from map(parse_json, lines)
