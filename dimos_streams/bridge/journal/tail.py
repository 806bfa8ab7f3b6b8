"""The newest events of a journal's file, in a small file beside it until the database has them.

A commit is eight system calls, six of them for locks, and all that the processor has forgotten of SQLite since the
last one: of an event that comes alone it takes a third of the bridge's time with it. The tail is one call. It makes
the event safe from the end of the process, the readers have it, and then the database takes it in. A tail has what
came at one moment: before it is written again the database has all of it.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

from dimos_streams.bridge.journal.tables import Row
from dimos_streams.common.text import parse_json
from dimos_streams.tool_stream.event import ToolEvent

_SUFFIX = "-tail"
_LONGEST = 16 * 1024 * 1024


class Tail:
    """The tail of one file, to write. All but ``close`` raise ``OSError``."""

    def __init__(self, path: Path) -> None:
        """``path`` is the journal's."""
        self._path = _beside(path)
        self._file = -1

    def open(self) -> None:
        """Begin an empty one: the database must have what was left in it."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def write(self, journal_id: str, rows: Sequence[Row]) -> None:
        """Keep rows in the place of those that were kept before."""
        # JSON has no line ends.
        lines = b"\n".join([b"%d %d %b" % (offset, utime, body) for offset, utime, *_, body in rows])
        data = b"%b %d %d\n%b" % (journal_id.encode(), zlib.crc32(lines), len(lines), lines)
        if os.pwrite(self._file, data, 0) != len(data):
            raise OSError(f"the disk has not taken all of {self._path}")

    def close(self) -> None:
        """Twice is fine."""
        file, self._file = self._file, -1
        if file >= 0:
            with contextlib.suppress(OSError):
                os.close(file)


def left_in_tail(path: Path, journal_id: str, last: int) -> list[Row]:
    """The rows behind offset ``last`` that a process which was killed has left in the tail of its journal's file.

    None where the tail is another journal's, or not whole, or where something between the two is missing: after a
    power cut the disk has a part of what was written, and not always the oldest one.
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
    """Raises ``ValueError`` or ``TypeError`` for a line that is none."""
    offset, utime, body = line.split(b" ", 2)
    event = ToolEvent.from_dict(parse_json(body))
    return int(offset), int(utime), event.call_id, event.seq, event.caller, event.type, body


def _beside(path: Path) -> Path:
    return path.with_name(path.name + _SUFFIX)
