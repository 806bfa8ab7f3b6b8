"""The output of a process, what it logs and prints: it shows no secret, and a disk that refuses it must not end the
process."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dimos_streams import clock
from dimos_streams.common.printable import CONTINUATION
from dimos_streams.common.process.log_settings import log_bytes
from dimos_streams.common.secrets import RedactedPieces, users_redacted
from dimos_streams.errors import UserError
from dimos_streams.runtime.processes.rotated_log import MAX_BYTES, older_file

_TRY_AGAIN_S = 1.0
_STANDARD = (1, 2)
_LONGEST_WAITING = 10_000
"""Number of characters of a line that has not ended from which on it is written all the same."""


class LossyFile(io.RawIOBase):
    """A file whose losses are no errors: what the disk does not take is counted, and the count is written where it is
    missing. A log, which has a path, is begun anew when it is large; its older file stays beside it."""

    def __init__(
        self,
        descriptor: int,
        path: Path | None = None,
        *,
        is_open: bool = False,
        on_loss: Callable[[str], None] | None = None,
    ) -> None:
        """``path`` is opened for ``descriptor`` as soon as possible, unless it is open already; without a path the
        descriptor must be open. ``on_loss`` is called with the reason when something is lost. Raises ``UserError``
        for a size of logs that is none."""
        self.name = str(path or descriptor)
        self._descriptor = descriptor
        self._path = path
        self._most_bytes = MAX_BYTES if path is None else log_bytes(os.environ, MAX_BYTES)
        self._is_open = is_open or path is None
        self._tried_at = float("-inf")
        self._lost = 0
        self._why = ""
        self._on_loss = on_loss

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
            self._rotate(len(text))
            if self._lost:
                missing = f"\n{CONTINUATION}{self._lost} bytes are missing here: {self._why}\n"
                self._write_all(missing.encode())
                self._lost = 0
            self._write_all(text)
        except OSError as error:
            self._lost += len(text)
            self._why = error.strerror or str(error)
            if self._on_loss is not None:
                self._on_loss(self._why)
        return len(text)

    def _open(self) -> None:
        """Open the file if it is not open. Raises ``OSError`` if it can't be opened yet."""
        if self._is_open or self._path is None:
            return
        if clock.monotonic() - self._tried_at < _TRY_AGAIN_S:
            raise OSError(self._why)
        self._tried_at = clock.monotonic()
        self._take(_open_to_append(self._path))
        self._is_open = True

    def _rotate(self, coming: int) -> None:
        """Begin another file if this one would become too large by what is coming; where that can't be done, the
        file goes on."""
        if self._path is None:
            return
        found = os.fstat(self._descriptor)
        if found.st_size == 0 or found.st_size + coming <= self._most_bytes:
            return
        with contextlib.suppress(OSError):
            # Else another process has done it: a log is two processes' while one takes the other's place.
            if _is_at(self._path, found):
                self._path.replace(older_file(self._path))
            self._take(_open_to_append(self._path))

    def _take(self, fd: int) -> None:
        """Have the descriptor, and what else this process writes to, lead to an open file."""
        if self._descriptor in _STANDARD:
            for descriptor in _STANDARD:
                os.dup2(fd, descriptor)
        else:
            os.dup2(fd, self._descriptor, inheritable=False)
        os.close(fd)

    def _write_all(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]


def _open_to_append(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _is_at(path: Path, found: os.stat_result) -> bool:
    """Return whether a path leads to a file. Raises ``OSError`` if that can't be told."""
    try:
        return path.stat().st_ino == found.st_ino
    except FileNotFoundError:
        return False


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
        fd = _open_to_append(path)
    except OSError as error:
        raise UserError(f"log {str(path)!r} can't be written: {error.strerror}") from error
    return lines_to(LossyFile(fd, path, is_open=True))


def guard_output(on_loss: Callable[[str], None] | None = None) -> None:
    """Let standard output and error show no secret; those that go to files lose what does not fit, instead of failing
    this process. ``on_loss`` is called with the reason when standard output loses something."""
    for name, descriptor, lost in zip(("stdout", "stderr"), _STANDARD, (on_loss, None), strict=True):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__"):  # somebody else put it in its place
            continue
        stream.flush()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            guarded = lines_to(LossyFile(descriptor, on_loss=lost))
        else:
            guarded = RedactedLines(os.fdopen(descriptor, "wb", closefd=False), stream.encoding)
        setattr(sys, name, guarded)


def lines_to(file: LossyFile) -> RedactedLines:
    """Return a stream of text on a file, written line by line."""
    return RedactedLines(file, "utf-8")
