"""Files of the journal that are moved aside: damaged ones, and those that lack what came later."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from pathlib import Path

from dimos_streams import clock

_logger = logging.getLogger(__name__)

_DAMAGED, _LEFT = ".damaged-", ".left-"
"""Parts of the names of files that were moved aside because they are damaged, or lack what came later."""
_REFUSED = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""SQLite's error codes for a disk that may accept the data another time."""
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""SQLite's error codes for a file that another program holds."""


def leave_behind(path: Path) -> None:
    """Move a file aside that is good as far as it goes, with its write-ahead log. A new name needs no room."""
    aside = f"{path.name}{_LEFT}{clock.utime()}"
    try:
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(path.with_name(aside + suffix))
    except OSError as error:
        _logger.error("the journal %s can't be moved aside: %s", path, error)


def set_aside(path: Path, error: sqlite3.Error) -> bool:
    """Move a damaged file aside, without its write-ahead log; return whether that could be done."""
    aside = path.with_name(f"{path.name}{_DAMAGED}{clock.utime()}")
    try:
        path.rename(aside)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as second:
        _logger.error("the damaged journal %s can't be moved aside: %s", path, second)
        return False
    _logger.error("the journal %s is damaged (%s); it was moved to %s", path, error, aside)
    return True


def has_predecessor(path: Path) -> bool:
    """Return whether a journal of that name was moved aside."""
    return bool(_find_moved(path, _DAMAGED, _LEFT))


def left_files(path: Path) -> list[Path]:
    """The files of a journal that were left behind, good as far as they go, oldest first."""
    return sorted(each for each in _find_moved(path, _LEFT) if not each.name.endswith(("-wal", "-shm")))


def is_there(path: Path) -> bool:
    """Return whether there is a file; False if the disk does not say."""
    try:
        return path.exists()
    except OSError:  # a fault of the disk, no rights, or no possible name: whoever opens it is told
        return False


def stat_of(path: Path) -> os.stat_result | None:
    """Return what the disk knows of a file; None if the disk does not say."""
    try:
        return path.stat()
    except OSError:
        return None


def is_same(path: Path, opened: os.stat_result) -> bool:
    """Return whether the file at a path is the one that was opened; True if the disk does not say."""
    try:
        return os.path.samestat(path.stat(), opened)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _find_moved(path: Path, *kinds: str) -> list[Path]:
    beginnings = tuple(f"{path.name}{kind}" for kind in kinds)
    try:
        return [path.with_name(name) for name in os.listdir(path.parent) if name.startswith(beginnings)]
    except FileNotFoundError:
        return []
    except OSError as error:
        _logger.error("what was moved aside of the journal %s can't be found: %s", path, error)
        return []


def is_refusal(error: sqlite3.Error) -> bool:
    """Return whether the disk is to blame, which may be different later."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _REFUSED


def is_lock(error: sqlite3.Error) -> bool:
    """Return whether another program holds the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED


def is_damaged(error: sqlite3.Error) -> bool:
    """Return whether the file itself is bad, not the disk or the rights to it."""
    return type(error) is sqlite3.DatabaseError
