"""The file of an SQLite database: whose it is, that one hub serves from it, and that it is still there."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
from pathlib import Path

from dimos_streams.common.process.disk import real_path
from dimos_streams.common.process.ownership import stranger_with
from dimos_streams.errors import DimosStreamsError, UserError
from dimos_streams.hub.storage.rows import StorageUnavailableError
from dimos_streams.journal.files.moved_files import is_same, stat_of


class SqliteFile:
    """A file that is its owner's only, and one hub's by whatever name. What is wrong with it is a ``UserError``, for
    the person who has named it or, if it could be used before, a ``StorageUnavailableError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1
        self._opened_as: os.stat_result | None = None

    def take(self) -> None:
        """Make this the only process that serves from the file. Raises ``UserError`` if there is one."""
        try:
            lock = os.open(f"{self._real()}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except (OSError, RuntimeError) as error:  # RuntimeError is a circle of links
            raise self.unusable(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if not isinstance(error, BlockingIOError):  # a file system without locks
                raise self.unusable(error) from error
            raise UserError(
                f"another hub serves from {self.path}: stop it, or use PostgreSQL for several hubs (--database"
                " postgresql://…)"
            ) from error
        self._lock = lock

    def release(self) -> None:
        """Let others serve from it. Twice is fine."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def check_there(self) -> None:
        """Raise ``UserError`` if there is none."""
        if not self.path.exists():
            raise UserError(
                f"there is no hub's database {self.path}; `dimos-streams hub` makes one, and `migrate` too"
            )

    def make_new(self) -> None:
        """Make the file, for its owner only, if there is none; one that is there is not touched."""
        try:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._real(), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except (OSError, RuntimeError) as error:
            raise self.unusable(error) from error

    def make_private(self) -> None:
        """Make the hub's file for its owner only; what SQLite makes beside it is the same.

        Raises ``UserError`` for one with several names: SQLite has a log for each of them, which damages the file.

        It is not opened: to close it would end SQLite's locks of it, which are the whole process's.
        """
        try:
            file = self._real()
            for each in _with_what_is_beside(file):
                with contextlib.suppress(FileNotFoundError):
                    if (found := each.stat()).st_mode & 0o077 and os.geteuid() in (0, found.st_uid):
                        each.chmod(0o600)
            names = file.stat().st_nlink
        except (OSError, RuntimeError) as error:
            raise self.unusable(error) from error
        if names > 1 and self._opened_as is None:
            raise UserError(
                f"the hub's database {self.path} has {names} names (hard links), and another one may be in use:"
                " remove the others, or make a copy"
            )

    def note_opened(self) -> None:
        """Note which file it is that is used from here on."""
        self._opened_as = self._opened_as or stat_of(self.path)

    @property
    def change(self) -> str:
        """The change of the file since it was opened, if SQLite would go on in one that nobody finds again; empty if
        it is the same."""
        if self._opened_as is None or is_same(self.path, self._opened_as):
            return ""
        return (
            f"the hub's database {self.path} was deleted, moved or replaced while the hub uses it: put the file"
            " back, or restart the hub, which uses what is there then, or begins a new one"
        )

    def size(self) -> int:
        """Its bytes, with what SQLite makes beside it. Raises ``StorageUnavailableError``."""
        try:
            file = real_path(self.path)
            return sum(map(_size, file.parent.glob(f"{glob.escape(file.name)}*")))
        except (OSError, RuntimeError) as error:
            raise StorageUnavailableError(f"the hub's database {self.path}: {_why(error)}") from error

    def unusable(self, error: Exception) -> DimosStreamsError:
        """The error of a file that can't be used."""
        kind = UserError if self._opened_as is None else StorageUnavailableError
        return kind(f"the hub's database {self.path} can't be used: {_why(error)}")

    def _real(self) -> Path:
        """The file itself, whatever link leads there. Raises ``OSError`` if there can't be one, and ``UserError`` if
        another user could act as the hub."""
        file = real_path(self.path)
        if file.is_dir():
            raise IsADirectoryError(0, "it is a directory")
        if not file.parent.is_dir():
            raise FileNotFoundError(0, f"there is no directory {file.parent}")
        for each in (self.path, file.parent, *_with_what_is_beside(file)):
            if (user := stranger_with(each)) is not None:
                raise UserError(
                    f"the hub's database {self.path}: {each} belongs to user {user}, who could act as the hub;"
                    " let it be yours or root's, or name another file"
                )
        return file


def _size(path: Path) -> int:
    """The size of a file, 0 for one that has gone: SQLite removes what it has made beside a database."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _with_what_is_beside(file: Path) -> tuple[Path, ...]:
    """A database's file, and those that SQLite and the hub make beside it."""
    return (file, *(Path(f"{file}{end}") for end in ("-wal", "-shm", ".lock")))


def _why(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
