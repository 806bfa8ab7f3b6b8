"""The newest events of a journal's file, in a small file beside it until the database has them.

A commit is eight system calls, six of them for locks, and all that the processor has forgotten of SQLite since the
last one: of an event that comes alone it takes a third of the bridge's time with it. The tail is one call. It makes
the event safe from the end of the process, the readers have it, and then the database takes it in. A tail has what
came at one moment: before it is written again the database has all of it.

It also says whose the journal is: whoever writes one has its tail locked, for as long as the process lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sqlite3
import stat
import zlib
from pathlib import Path

from dimos_streams.common.json.reading import parse_json
from dimos_streams.journal.tables import Row
from dimos_streams.tool_stream.event import ToolEvent

_logger = logging.getLogger(__name__)

_SUFFIX = "-tail"
_LONGEST = 16 * 1024 * 1024
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags of opening it, though it may be no file: a link would lead to somebody else's, and a pipe be waited for."""
_MOST = 2**63 - 1


class Tail:
    """The tail of a journal's file. There is none for memory, or where it can't be written, which is logged once."""

    def __init__(self) -> None:
        self.uncommitted: list[Row] = []
        """The rows that are in the tail and not yet in the database."""
        self.is_anothers = False
        """True if another process writes the journal: nothing beside its file is ours either."""
        self._path = Path()
        self._file = -1

    def open(self, path: Path) -> None:
        """Take the tail of a journal's file, with what was left in it. Twice is fine. Raises
        ``sqlite3.OperationalError``, as of a file that is locked, if another process writes that journal."""
        if self.is_open:  # a lock goes with the first descriptor of the file that is closed
            return
        self._path = _beside(path)
        try:
            self._file = _open_file(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            _logger.warning("the journal %s can have no tail: %s", path, error)
            return
        self.is_anothers = not _is_locked(self._file)
        if self.is_anothers:
            self.close()
            raise _operational(f"another process writes the journal {path}", sqlite3.SQLITE_BUSY)

    def left(self, journal_id: str, last: int) -> list[Row]:
        """The rows behind offset ``last`` that were left in it; see ``left_in_tail``. Raises
        ``sqlite3.OperationalError``, as of a file that can't be read, if nobody knows: readers may have had some."""
        try:
            return [] if self._file < 0 else _rows(os.pread(self._file, _LONGEST, 0), journal_id, last)
        except OSError as error:
            raise _operational(f"{self._path} can't be read: {error}", sqlite3.SQLITE_IOERR) from error

    def begin(self) -> None:
        """Empty it; the database must have what was left in it."""
        if self._file >= 0:
            try:
                os.ftruncate(self._file, 0)
            except OSError as error:
                self._do_without(error)

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
            self._do_without(error)
            return False
        self.uncommitted = rows
        return True

    def _do_without(self, error: OSError) -> None:
        _logger.warning("%s can't be written (%s): it is done without", self._path, error)
        self.close()

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
        file = _open_file(_beside(path), os.O_RDONLY)
    except OSError:
        return []
    try:
        return _rows(os.pread(file, _LONGEST, 0), journal_id, last)
    except OSError:
        return []
    finally:
        os.close(file)


def _operational(why: str, code: int) -> sqlite3.OperationalError:
    """An error like those of SQLite, with one of its codes."""
    error = sqlite3.OperationalError(why)
    error.sqlite_errorcode = code
    return error


def _open_file(path: Path, flags: int) -> int:
    """The descriptor of a tail. Raises ``OSError``, also for what is no file."""
    file = os.open(path, flags | _OPEN, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{path} is no file")
    return file


def _is_locked(file: int) -> bool:
    """Lock a file for this process, and return whether that could be done."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:  # a file system without locks: nobody else can be kept out
        _logger.warning("a journal's tail can't be locked: %s", error)
    return True


def _rows(content: bytes, journal_id: str, last: int) -> list[Row]:
    try:
        head, _, rest = content.partition(b"\n")
        of, checksum, size = head.split(b" ")
        lines = rest[: int(size)]
        if of != journal_id.encode() or zlib.crc32(lines) != int(checksum):
            return []
        rows = [row for row in map(_row, lines.split(b"\n")) if row[0] > last]
    except (ValueError, TypeError):
        return []
    return rows if [row[0] for row in rows] == [*range(last + 1, last + 1 + len(rows))] else []


def _row(line: bytes) -> Row:
    """The row of a line of the tail. Raises ``ValueError`` or ``TypeError`` for an invalid line."""
    offset, utime, body = line.split(b" ", 2)
    event = ToolEvent.from_dict(parse_json(body))
    row = int(offset), int(utime), event.call_id, event.seq, event.caller, event.type, body
    if not (0 < row[0] <= _MOST and abs(row[1]) <= _MOST):
        raise ValueError(f"numbers that no journal has: {line[:80]!r}")
    return row


def _beside(path: Path) -> Path:
    return path.with_name(path.name + _SUFFIX)
