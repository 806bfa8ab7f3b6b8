"""Files: where links lead, whether there is room for them, how many may be open, whether they have an end, and those
that are whole at every moment."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

_PROBE = ".probe"
_OUTDATED = ".outdated"
"""The suffix of what was saved before something that could not be. A new name needs no room on a full disk."""
_BLOCK = bytes(4096)
_SMALL_BYTES = 4 * 1024 * 1024
"""Maximum size of a file that is read as a whole, unless its reader says another, in bytes."""


def trouble_with(directory: Path) -> str:
    """Return why nothing can be written in a directory; empty if something can. Waits for the disk; never raises.

    It tries: free blocks say nothing of quotas, or of a disk that has become read-only.
    """
    path = directory / _PROBE
    trouble = ""
    try:
        path.write_bytes(_BLOCK)
    except OSError as error:
        trouble = error.strerror or str(error)
    with contextlib.suppress(OSError):  # that it could not be written is what counts
        path.unlink(missing_ok=True)
    return trouble


def check_free_descriptors(count: int) -> None:
    """Raise ``OSError`` unless ``count`` more files can be opened now, for libraries that do worse without them."""
    with contextlib.ExitStack() as opened:
        for _ in range(count // 2):
            for descriptor in os.pipe():
                opened.callback(os.close, descriptor)


def real_path(path: Path) -> Path:
    """Return the path of the file or folder that a path leads to, absolute and without links. A circle of links stays
    in it: whoever opens it gets the system's own error, where ``Path.resolve`` would raise one that is a bug's."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # it has a NUL, which no path has: that is said, too, by whatever opens it
        return Path(os.path.abspath(path))


def at_home(path: str | Path) -> Path:
    """Return a path with the user's directory for ``~``. One of a home that nobody knows stays as it is, and is not
    found then, where ``Path.expanduser`` would raise ``RuntimeError``."""
    return Path(os.path.expanduser(path))


def why_endless(status: os.stat_result) -> str:
    """Return why what is to be read may have no end; empty for files and directories."""
    is_bounded = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return "" if is_bounded else "it is a device or a pipe, which may have no end"


def replace_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Put a text in a file's place, for its owner only; a reader finds the old text or the new one. A ``durable`` one
    outlasts a machine that loses its power, which takes as long as the disk does: never wait for that on a loop.

    Raises ``OSError``; then the old one is there, and nothing else, unless it is the folder that the disk did not
    take: then it may be either.
    """
    temporary = path.with_suffix(".new")
    try:
        temporary.touch(mode=0o600)
        temporary.chmod(0o600)  # it may have been left there by somebody else
        temporary.write_text(text, encoding="utf-8")
        if durable:
            _sync(temporary)  # else the new name may reach the disk before what it is the name of
        temporary.replace(path)
        if durable:
            _sync(path.parent)  # else the disk may still have the old file under this name
    except OSError:
        with contextlib.suppress(OSError):  # the first error says more
            temporary.unlink(missing_ok=True)
        raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # that is said by what is on no disk
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_small(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read it. Raises ``OSError``, also for what is no file: a pipe would wait for a writer."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if why := why_endless(os.fstat(file.fileno())):
            raise OSError(errno.EINVAL, why, str(path))
        yield file


def read_small(path: Path, most: int = _SMALL_BYTES) -> bytes:
    """Return all bytes of a file. Raises ``OSError`` as ``open_small`` does, and for one that has more than
    ``most``."""
    with open_small(path) as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise OSError(f"{path} has more than {most} bytes")
    return found


class SavedState(NamedTuple):
    """A state that has to outlast its process, such as who holds a robot, as it was saved last."""

    text: bytes | None
    """None if nothing was ever saved."""
    outdated: bool
    """True if something newer was to be saved, and could not be."""


def save_state(path: Path, text: str) -> None:
    """Put a text in a file's place, and wait for the disk. Raises ``OSError``; then what was saved before is kept, as
    out of date."""
    try:
        replace_text(path, text, durable=True)
    except OSError:
        with contextlib.suppress(OSError):  # the first error says more
            outdate(path)
        raise
    forget_outdated(path)


def forget_outdated(path: Path) -> None:
    """Remove what is kept as out of date, now that something newer is saved."""
    with contextlib.suppress(OSError):  # the newer file counts
        path.with_suffix(_OUTDATED).unlink(missing_ok=True)


def load_state(path: Path) -> SavedState:
    """Return what was saved. Raises ``OSError`` if it can't be read."""
    for name, outdated in ((path, False), (path.with_suffix(_OUTDATED), True)):
        with contextlib.suppress(FileNotFoundError):
            text = read_small(name)
            return SavedState(None if outdated and not text else text, outdated)
    return SavedState(None, outdated=False)


def outdate(path: Path) -> None:
    """Keep what was saved as out of date. Raises ``OSError``."""
    outdated = path.with_suffix(_OUTDATED)
    try:
        path.rename(outdated)
    except FileNotFoundError:
        outdated.touch(mode=0o600)
