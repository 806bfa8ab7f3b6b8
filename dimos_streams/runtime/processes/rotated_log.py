"""The log of a process in two files, of which the older one is dropped in time: a run goes on for weeks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 32 * 1024 * 1024
"""Maximum size of each of a log's two files, in bytes; a piece of text that is larger is written whole."""


def older_file(path: Path) -> Path:
    """Return where the file is that was a log before the present one was begun."""
    return path.with_name(f"{path.name}.1")


class LogTail:
    """A reader of a log as it grows, from the oldest line that is kept on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        """The number of the file that was read last."""
        self._offset = 0

    def lines(self, *, is_over: bool = False) -> Iterator[bytes]:
        """Yield the lines that have come since the last time, without their ends. What stands behind the last line
        end is a line that is being written, unless the log ``is_over``. Raises ``OSError`` for a log that can't be
        read."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self._inode:
                yield from self._rest_of_older(inode)
                self._inode, self._offset = inode, 0
            yield from self._lines(file, is_over=is_over)

    def _rest_of_older(self, newest: int) -> Iterator[bytes]:
        """Yield what is still to be read of the older file, if there is one."""
        with contextlib.suppress(FileNotFoundError), older_file(self._path).open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode == newest:
                return
            if inode != self._inode:
                self._inode, self._offset = inode, 0
            yield from self._lines(file, is_over=True)

    def _lines(self, file: BinaryIO, *, is_over: bool) -> Iterator[bytes]:
        size = file.seek(0, os.SEEK_END)  # whoever writes on meanwhile is read next time
        at = file.seek(self._offset)
        while at < size and (line := file.readline()):
            if not (line.endswith(b"\n") or is_over):
                return
            at = self._offset = at + len(line)
            yield line.removesuffix(b"\n")
