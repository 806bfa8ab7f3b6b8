"""The newest events of a journal's file, in a small file beside it until the database has them.

A commit is eight system calls, six of them for locks, and all that the processor has forgotten of SQLite since the
last one: of an event that comes alone it takes a third of the bridge's time with it. The tail is one call. It makes
the event safe from the end of the process, the readers have it, and then the database takes it in. A tail has what
came at one moment: before it is written again the database has all of it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import zlib
from pathlib import Path

from dimos_streams.bridge.journal.tables import Row
from dimos_streams.common.text import parse_json
from dimos_streams.tool_stream.event import ToolEvent

_logger = logging.getLogger(__name__)

_SUFFIX = "-tail"
_LONGEST = 16 * 1024 * 1024


class Tail:
    """The tail of a journal's file. There is none for memory, or where it can't be written, which is logged once."""

    def __init__(self) -> None:
        self.unsettled: list[Row] = []
        """The rows that are in the tail and not yet in the database."""
        self._path = Path()
        self._file = -1

    def open(self, path: Path) -> None:
        """Begin an empty tail of a journal's file; the database must have what was left in the old one."""
        self._path = _beside(path)
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            _logger.warning("the journal %s can have no tail: %s", path, error)

    @property
    def is_open(self) -> bool:
        """True if there is a tail."""
        return self._file >= 0

    def keep(self, journal_id: str, rows: list[Row]) -> bool:
        """Keep rows in place of those before, which the database must have; return whether they are safe now."""
        # JSON has no line ends.
        lines = b"\n".join([b"%d %d %b" % (offset, utime, body) for offset, utime, *_, body in rows])
        data = b"%b %d %d\n%b" % (journal_id.encode(), zlib.crc32(lines), len(lines), lines)
        try:
            if os.pwrite(self._file, data, 0) != len(data):
                raise OSError("the disk has not taken all of it")
        except OSError as error:
            _logger.warning("%s can't be written (%s): it is done without", self._path, error)
            self.close()
            return False
        self.unsettled = rows
        return True

    def close(self) -> None:
        """Write no more. Twice is fine."""
        file, self._file = self._file, -1
        if file >= 0:
            with contextlib.suppress(OSError):
                os.close(file)


def left_in_tail(path: Path, journal_id: str, last: int) -> list[Row]:
    """The rows behind offset ``last`` that a process which was killed has left in the tail of its journal's file.

    Empty if the tail is another journal's, or not whole, or if something between the two is missing: after a power
    cut the disk has a part of what was written, and not always the oldest one.
    """
    try:
        with _beside(path).open("rb") as file:
            head, _, rest = file.read(_LONGEST).partition(b"\n")
        of, checksum, size = head.split(b" ")
        lines = rest[: int(size)]
        if of != journal_id.encode() or zlib.crc32(lines) != int(checksum):
            return []
        rows = [row for row in map(_row, lines.split(b"\n")) if row[0] > last]
    except (OSError, ValueError, TypeError):
        return []
    return rows if rows and rows[0][0] == last + 1 else []


def _row(line: bytes) -> Row:
    """The row of a line of the tail. Raises ``ValueError`` or ``TypeError`` for an invalid line."""
    offset, utime, body = line.split(b" ", 2)
    event = ToolEvent.from_dict(parse_json(body))
    return int(offset), int(utime), event.call_id, event.seq, event.caller, event.type, body


def _beside(path: Path) -> Path:
    return path.with_name(path.name + _SUFFIX)
