"""The log of a process in two files, of which the older one is dropped in time: a run goes on for weeks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dimos_streams.common.printable import CONTINUATION

MAX_BYTES = 32 * 1024 * 1024
"""Maximum size of each of a log's two files, in bytes, unless the environment sets another (``log_bytes``); a piece
of text that is larger is written whole."""
_BEGINNING = 100
"""Number of bytes by which a file is known again, its first line's time among them."""
_LOST = b"%blines may be missing here: the log was begun anew more than once since it was last read"


def older_file(path: Path) -> Path:
    """Return where the file is that was a log before the present one was begun."""
    return path.with_name(f"{path.name}.1")


class LogTail:
    """A reader of a log as it grows, from the oldest line that is kept on. A line of its own stands for what may have
    been dropped before it was read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[int, bytes] | None = None
        """The number and the beginning of the file that was read last: a number is another file's once it is free."""
        self._offset = 0

    def lines(self, *, is_over: bool = False) -> Iterator[bytes]:
        """Yield the lines that have come since the last time, without their ends. What stands behind the last line
        end is a line that is being written, unless the log ``is_over``. Raises ``OSError`` for a log that can't be
        read."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            if not self._is_known(file):
                yield from self._rest_of_older(os.fstat(file.fileno()).st_ino)
                self._offset = 0
            yield from self._lines(file, is_over=is_over)

    def _rest_of_older(self, newest: int) -> Iterator[bytes]:
        """Yield what is still to be read of the older file, if there is one."""
        with contextlib.suppress(FileNotFoundError), older_file(self._path).open("rb") as file:
            if os.fstat(file.fileno()).st_ino == newest:
                return
            if not self._is_known(file):
                if self._read is not None:
                    yield _LOST % CONTINUATION.encode()
                self._offset = 0
            yield from self._lines(file, is_over=True)

    def _is_known(self, file: BinaryIO) -> bool:
        """Return whether a file is the one that was read last."""
        if self._read is None:
            return False
        (inode, beginning), (known, begun) = _identity(file), self._read
        return inode == known and beginning.startswith(begun)

    def _lines(self, file: BinaryIO, *, is_over: bool) -> Iterator[bytes]:
        self._read = _identity(file)
        size = file.seek(0, os.SEEK_END)  # whoever writes on meanwhile is read next time
        at = file.seek(self._offset)
        while at < size and (line := file.readline()):
            if not (line.endswith(b"\n") or is_over):
                return
            at = self._offset = at + len(line)
            yield line.removesuffix(b"\n")


def _identity(file: BinaryIO) -> tuple[int, bytes]:
    return os.fstat(file.fileno()).st_ino, os.pread(file.fileno(), _BEGINNING, 0)
