"""The log of a process in two files, of which the older one is dropped in time: a run goes on for weeks."""

from __future__ import annotations

import os
from pathlib import Path

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

    def read(self) -> bytes:
        """Return the whole lines that have come since the last time. Raises ``OSError`` for a log that can't be
        read."""
        try:
            with self._path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                before = b"" if inode == self._inode else self._rest_of_older(inode)
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:  # another file is begun at this moment
            return b""
        self._inode = inode
        whole = data.rfind(b"\n") + 1  # the rest of a line that is being written comes next time
        self._offset += whole
        return before + data[:whole]

    def _rest_of_older(self, newest: int) -> bytes:
        """Return what is still to be read of the older file, if there is one, and begin anew."""
        offset, self._offset = self._offset, 0
        try:
            with older_file(self._path).open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode == newest:
                    return b""
                file.seek(offset if inode == self._inode else 0)
                data = file.read()
        except FileNotFoundError:
            return b""
        return data if data.endswith(b"\n") or not data else data + b"\n"
