"""Writes LCM logs: new ones, or on at the end of one that may have been cut off by a crash."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from pathlib import Path
from typing import BinaryIO

from dimos_streams.errors import UserError
from dimos_streams.recording.files.claim import claim, newest_part, part_path
from dimos_streams.recording.format import pack
from dimos_streams.recording.reader import LogReader

FLUSH_US = 500_000
"""The time between flushes, in µs, by which events are handed to the system."""
_BUFFER = 1 << 17

_logger = logging.getLogger(__name__)


class LogWriter:
    """One log, or several parts of it: ``a.lcmlog``, ``a.1.lcmlog``, ``a.2.lcmlog``, … Use with ``with``."""

    def __init__(
        self,
        path: str | Path,
        *,
        append: bool = False,
        split_bytes: int | None = None,
        preamble: tuple[str, bytes] | None = None,
    ) -> None:
        """Make a writer. With ``split_bytes`` a part that has reached this size, in bytes, is followed by another.
        With ``append`` existing parts are kept, and the newest one is continued. ``preamble`` is a channel and data
        that come first in each part, with the time of the event that follows, and again where the log is
        continued."""
        self.path = Path(path)
        self.written = 0
        """The number of events, without the preambles."""
        self._append = append
        self._split_bytes = split_bytes
        self._preamble = preamble
        self._part = 0
        self._file: BinaryIO | None = None
        self._number = 0
        self._size = 0
        self._introduced = False
        """True once the preamble was written to the part."""
        self._whole = 0, 0, False
        """The number for the next event, the size of the file, and whether it has the preamble, as far as the system
        has taken it."""
        self._flushed_utime = 0

    def open(self) -> LogWriter:
        """Open the file. Raises ``UserError`` if it can't be written: it has something in it and is no log, or
        somebody else is writing it."""
        if self._append:
            self._part = newest_part(self.path)
        try:
            self._begin_part(append=self._append)
        except OSError as error:
            raise UserError(f"log {str(self.part)!r} can't be written: {error.strerror}") from error
        return self

    def close(self) -> None:
        """Write what is left. Twice is fine."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __enter__(self) -> LogWriter:
        return self.open()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def part(self) -> Path:
        """The file that is written now."""
        return part_path(self.path, self._part)

    def write(self, utime: int, channel: str, data: bytes) -> None:
        """Write one event. Raises ``OSError``, and ``ValueError`` for a channel that a log can't hold."""
        if not self._introduced:
            self._introduced = True
            if self._preamble is not None:
                self._write(utime, *self._preamble)
        self._write(utime, channel, data)
        self.written += 1
        if not 0 <= utime - self._flushed_utime < FLUSH_US:
            self._flushed_utime = utime
            self.flush()
        if self._split_bytes is not None and self._size >= self._split_bytes:
            self.close()
            self._begin_next_part()

    def flush(self) -> None:
        """Hand what was written to the system, which keeps it whatever happens to this process. Raises ``OSError``,
        also if the file was removed."""
        if self._file is not None:
            self._file.flush()
            # Some file systems count no links at all.
            if not os.fstat(self._file.fileno()).st_nlink and not self.part.exists():
                raise OSError(errno.ENOENT, "it was removed, with all that was in it")
            self._whole = self._number, self._size, self._introduced

    def resume(self) -> int:
        """Go on after an ``OSError``, behind what was written whole, or in a new file if it was removed or
        moved, and return the number of lost events. Raises ``OSError``."""
        file, self._file = self._file, None
        moved = file is not None and os.fstat(file.fileno()).st_nlink > 0 and not self.part.exists()
        if file is not None:
            with contextlib.suppress(OSError):  # it tries once more to write what is lost now
                file.close()
        if moved:
            self._number -= self._whole[0]
        if not self.part.exists():
            self._whole = 0, 0, False
        # What raises leaves the number as it is: the next attempt returns what is lost.
        self._file = _opened(self.part)
        if os.fstat(self._file.fileno()).st_size > self._whole[1]:
            self._file.truncate(self._whole[1])
        lost = self._number - self._whole[0]
        self._number, self._size, self._introduced = self._whole
        return lost

    def _write(self, utime: int, channel: str, data: bytes) -> None:
        assert self._file is not None, "open() first"
        event = pack(self._number, utime, channel, data)
        self._file.write(event)
        self._number += 1
        self._size += len(event)

    def _begin_next_part(self) -> None:
        """Begin the next part that nobody else is writing, as another recorder of such a name may. Raises
        ``OSError``."""
        while True:
            self._part += 1
            if self._append and self.part.exists():  # somebody may have put back one that was moved away
                continue
            try:
                return self._begin_part(append=False)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                _logger.warning("%s is passed over: %s", self.part, error.strerror)

    def _begin_part(self, *, append: bool) -> None:
        """Begin the part's file. Raises ``OSError``, and ``UserError`` if it is appended to and has no event."""
        self._whole = self._number, self._size, self._introduced = 0, 0, False
        file = _opened(self.part)
        try:
            if append:
                self._number, self._size = repair(self.part)
                self._whole = self._number, self._size, False
            else:
                file.truncate(0)
        except BaseException:
            file.close()
            raise
        self._file = file


def _opened(path: Path) -> BinaryIO:
    """A log's file to append to, claimed until it is closed. Raises ``OSError``."""
    return open(claim(path), "ab", buffering=_BUFFER)


def repair(path: Path) -> tuple[int, int]:
    """Cut what follows the last whole event of a log; return the number for the next event, and the size of the
    file.

    Says so with one warning. Raises ``UserError`` if the file has something in it but no event.
    """
    with LogReader(path) as reader:
        for _ in reader.events():
            pass
        end = reader.end
        if not end and reader.size:
            raise UserError(f"{str(path)!r} is no LCM log; nothing is appended to it")
        if end < reader.size:
            _logger.warning("%s ended inside an event; its last %d bytes were cut off", path, reader.size - end)
            os.truncate(path, end)
    return reader.end_number + 1, end
