"""The files of a log: what they are called, and which of them may be written, by one process at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from glob import escape
from pathlib import Path

from dimos_streams.common.process.ownership import refuse_strangers
from dimos_streams.recording.format import SYNC_BYTES

_HIGHEST_PART = 999_999
"""The highest number that is taken for a part's: a longer one is a date that somebody has given a copy."""


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


def parts_named(path: Path) -> Iterator[int]:
    """Yield the numbers of all files that are called as later parts of a log, whichever are missing."""
    for place in path.parent.glob(f"{escape(path.stem)}.*{escape(path.suffix)}"):
        number = place.name[len(path.stem) + 1 : len(place.name) - len(path.suffix)]
        if number.isdecimal() and place == part_path(path, int(number)):
            yield int(number)


def newest_part(path: Path) -> int:
    """The highest number of a log's parts that are there, also where earlier ones have gone; 0 if there are none."""
    return max((number for number in parts_named(path) if number <= _HIGHEST_PART), default=0)


def claim(path: Path, *, make: bool = True) -> int:
    """Return a descriptor of a file that is to be written as a log. Until it is closed nobody else can claim it.

    Raises ``OSError`` with the reason if the file may not be written: it has to be a regular one that is empty or a
    log, no other user's, and one that nobody else has claimed. With ``make`` False it has to be there.
    """
    refuse_strangers(path)  # before it is opened: else a file is made where a stranger's link leads
    # A pipe would wait for its other end.
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | (os.O_CREAT if make else 0), 0o666)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        refuse_strangers(path)  # what was put there meanwhile
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
