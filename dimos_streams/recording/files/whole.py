"""The file that a command makes of a log: it takes its place once it is whole."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dimos_streams.common.process.disk import real_path
from dimos_streams.common.process.ownership import refuse_strangers
from dimos_streams.common.process.run_owner import owned_folder
from dimos_streams.errors import cannot_write


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Give the block a path to write, of a new file beside the target, which replaces that when the block is over. If
    it raises, what was there before is left as it was.

    A device such as ``/dev/null``, a pipe that this process has open already, as that of a process substitution, and
    a file in a folder where nothing can be made are written themselves. A file that is open for writing, as
    ``/dev/stdout`` may be, gets what is new behind what was written so far. Raises the error of ``cannot_write``, for
    what is no file too, and for another user's link.
    """
    try:
        if (descriptor := _open_file(target)) is not None:
            yield from _written_behind(descriptor)
        elif _is_written_itself(target):
            yield target
        else:
            if target.is_symlink():
                refuse_strangers(target)
            yield from _written_beside(real_path(target))
    except OSError as error:
        raise cannot_write(repr(str(target)), error) from error


@contextmanager
def file_beside(target: Path) -> Iterator[Path]:
    """Give the block a new file, empty and with the target's mode, in a folder of its own beside the target: who
    moves it into the target's place copies nothing. It has gone at the end of the block; what processes that were
    killed have left there goes first. Raises ``OSError``."""
    with owned_folder(target.parent, ".dimos-streams-writes-") as folder:
        path = folder / f"new{target.suffix}"
        path.touch(mode=0o600)
        with contextlib.suppress(FileNotFoundError):  # a new one is its owner's
            path.chmod(stat.S_IMODE(target.stat().st_mode))
        yield path


def _written_beside(target: Path) -> Iterator[Path]:
    with file_beside(target) as path:
        yield path
        path.replace(target)


def _written_behind(descriptor: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "new")
        yield path
        with path.open("rb") as new, os.fdopen(os.dup(descriptor), "wb") as file:
            shutil.copyfileobj(new, file)


def _open_file(target: Path) -> int | None:
    """Return the descriptor by which this process has a file open for writing, or None if it has not."""
    with contextlib.suppress(FileNotFoundError):
        status = target.stat()
        if stat.S_ISREG(status.st_mode):
            writing = (number for number in _open_here(status) if _may_write(number))
            return next(writing, None)
    return None


def _may_write(descriptor: int) -> bool:
    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


def _is_written_itself(target: Path) -> bool:
    """Return whether no file can or should be put in the target's place. Raises ``OSError`` for what is no file."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISCHR(status.st_mode):
        return True
    if not stat.S_ISREG(status.st_mode):
        if next(_open_here(status), None) is not None:
            return True
        raise OSError(errno.EINVAL, "it is no regular file")  # a pipe would wait for its reader
    os.close(os.open(target, os.O_WRONLY))  # one that may not be written is not replaced either
    return not os.access(real_path(target).parent, os.W_OK)


def _open_here(status: os.stat_result) -> Iterator[int]:
    """Yield the descriptors by which this process has a file or pipe open."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # that of the list itself
            if os.path.samestat(status, os.fstat(descriptor)):
                yield descriptor
