"""The files of a log: what they are called, and which of them may be written, by one process at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

from dimos_streams.recording.format import SYNC_BYTES


def part_path(path: Path, part: int) -> Path:
    """The file of a log's part; 0 is the path itself."""
    return path if part == 0 else path.with_name(f"{path.stem}.{part}{path.suffix}")


def part_number(path: Path) -> tuple[Path, int]:
    """The log of which a file is a part by its name, and the part's number; 0 if it is the first or no part."""
    stem, dot, number = path.stem.rpartition(".")
    if not (stem and dot and number.isascii() and number.isdigit()):
        return path, 0
    return path.with_name(f"{stem}{path.suffix}"), int(number)


def part_numbers(path: Path) -> list[int]:
    """The numbers of a log's parts that are there, as far as they follow one another."""
    numbers = [0] if path.exists() else []
    number = 1
    while part_path(path, number).exists():
        numbers.append(number)
        number += 1
    return numbers


def claim(path: Path, *, make: bool = True) -> int:
    """Return a descriptor of a file that is to be written as a log. Until it is closed nobody else can claim it.

    Raises ``OSError`` with the reason if the file may not be written: it has to be a regular one that is empty or a
    log, and that nobody else has claimed. With ``make`` False it has to be there.
    """
    # A pipe would wait for its other end.
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | (os.O_CREAT if make else 0), 0o666)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if not SYNC_BYTES.startswith(os.pread(fd, len(SYNC_BYTES), 0)):
            raise OSError(errno.EEXIST, "it is no LCM log; nothing else is replaced by one, or appended to")
        _lock(fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _lock(fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OSError(errno.EBUSY, "somebody else is writing it") from error
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):  # file systems without locks
            raise
