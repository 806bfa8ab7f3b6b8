"""The file that a command makes of a log: it takes its place once it is whole."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dimos_streams.common.process.disk import real_path
from dimos_streams.errors import cannot_write


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Give the block a path to write, of a new file beside the target, which replaces that when the block is over. If
    it raises, what was there before is left as it was.

    A device such as ``/dev/null``, what this process has open already, as ``/dev/stdout`` or the pipe of a process
    substitution, and a file in a folder where nothing can be made are written themselves. Raises the error of
    ``cannot_write``, for what is no file too.
    """
    try:
        if _is_written_itself(target):
            yield target
        else:
            yield from _written_beside(real_path(target))
    except OSError as error:
        raise cannot_write(repr(str(target)), error) from error


def _written_beside(target: Path) -> Iterator[Path]:
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=".new", dir=target.parent)
    os.close(descriptor)
    beside = Path(name)
    try:
        with contextlib.suppress(FileNotFoundError):  # a new one is its owner's
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        yield beside
        beside.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error says more
            beside.unlink(missing_ok=True)
        raise


def _is_written_itself(target: Path) -> bool:
    """Return whether no file can or should be put in the target's place. Raises ``OSError`` for what is no file."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISCHR(status.st_mode) or _is_open_here(status):
        return True
    if not stat.S_ISREG(status.st_mode):  # a pipe would wait for its reader
        raise OSError(errno.EINVAL, "it is no regular file")
    os.close(os.open(target, os.O_WRONLY))  # one that may not be written is not replaced either
    return not os.access(real_path(target).parent, os.W_OK)


def _is_open_here(status: os.stat_result) -> bool:
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the list itself
            if os.path.samestat(status, os.fstat(int(descriptor))):
                return True
    return False
