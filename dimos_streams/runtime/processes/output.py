"""The output of a process, what it logs and prints: it shows no secret, and a disk that refuses it must not end the
process."""

from __future__ import annotations

import io
import os
import stat
import sys
import threading
from pathlib import Path
from typing import BinaryIO

from dimos_streams import clock
from dimos_streams.common.printable import CONTINUATION
from dimos_streams.common.secrets import RedactedPieces, users_redacted
from dimos_streams.errors import UserError

_TRY_AGAIN_S = 1.0
_STANDARD = (1, 2)
_LONGEST_WAITING = 10_000
"""Number of characters of a line that has not ended from which on it is written all the same."""


class LossyFile(io.RawIOBase):
    """A file whose losses are no errors: what the disk does not take is counted, and the count is written where it is
    missing."""

    def __init__(self, descriptor: int, path: Path | None = None) -> None:
        """``path`` is opened for ``descriptor`` as soon as possible; without it the descriptor must be open."""
        self.name = str(path or descriptor)
        self._descriptor = descriptor
        self._path = path
        self._tried_at = float("-inf")
        self._lost = 0
        self._why = ""

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor, also while nothing can be written to it."""
        return self._descriptor

    def write(self, data: object) -> int:
        """Write data, and return its length even if it could not be written. Never raises ``OSError``."""
        text = bytes(data)  # type: ignore[call-overload]
        try:
            self._open()
            if self._lost:
                missing = f"\n{CONTINUATION}{self._lost} bytes are missing here: {self._why}\n"
                self._write_all(missing.encode())
                self._lost = 0
            self._write_all(text)
        except OSError as error:
            self._lost += len(text)
            self._why = error.strerror or str(error)
        return len(text)

    def _open(self) -> None:
        """Open the file if it is not open. Raises ``OSError`` if it can't be opened yet."""
        if self._path is None:
            return
        if clock.monotonic() - self._tried_at < _TRY_AGAIN_S:
            raise OSError(self._why)
        self._tried_at = clock.monotonic()
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for descriptor in _STANDARD:
            os.dup2(fd, descriptor)
        os.close(fd)
        self._path = None

    def _write_all(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]


class RedactedLines(io.TextIOWrapper):
    """A stream of text, written line by line, with ``[redacted]`` in place of each secret of this process."""

    def __init__(self, file: BinaryIO | LossyFile, encoding: str) -> None:
        super().__init__(file, encoding=encoding, errors="backslashreplace", line_buffering=True)
        self._turn = threading.RLock()
        """Held by the thread that writes; a signal's handler may write in the middle of that."""
        self._line: list[str] = []
        self._length = 0
        self._pieces = RedactedPieces()

    def write(self, text: str) -> int:
        """Write the lines that have ended; one that is very long is not waited for."""
        with self._turn:
            self._line.append(text)
            self._length += len(text)
            if "\n" in text or "\r" in text or self._length > _LONGEST_WAITING:
                whole = self._take()
                end = max(whole.rfind("\n"), whole.rfind("\r")) + 1 or len(whole)
                self._line, self._length = [whole[end:]], len(whole) - end
                super().write(users_redacted(self._pieces.add(whole[:end])))
        return len(text)

    def flush(self) -> None:
        """Write all, also a line that has only begun."""
        with self._turn:
            if waiting := self._pieces.add(self._take()) + self._pieces.rest():
                super().write(users_redacted(waiting))
            super().flush()

    def _take(self) -> str:
        line = "".join(self._line)
        self._line, self._length = [], 0
        return line


def write_to(path: Path) -> None:
    """Send all that this process writes from now on to the end of a file; what does not fit on the disk is lost."""
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in _STANDARD:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    file = LossyFile(_STANDARD[-1], path)
    file.write(b"")
    sys.stdout = sys.stderr = lines_to(file)


def open_log(path: Path) -> io.TextIOWrapper:
    """Open a log of its own, which loses what does not fit. Raises ``UserError`` if it can't be opened."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise UserError(f"log {str(path)!r} can't be written: {error.strerror}") from error
    return lines_to(LossyFile(fd))


def guard_output() -> None:
    """Let standard output and error show no secret; those that go to files lose what does not fit, instead of failing
    this process."""
    for name, descriptor in zip(("stdout", "stderr"), _STANDARD, strict=True):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__"):  # somebody else put it in its place
            continue
        stream.flush()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            guarded = lines_to(LossyFile(descriptor))
        else:
            guarded = RedactedLines(os.fdopen(descriptor, "wb", closefd=False), stream.encoding)
        setattr(sys, name, guarded)


def lines_to(file: LossyFile) -> RedactedLines:
    """Return a stream of text on a file, written line by line."""
    return RedactedLines(file, "utf-8")
