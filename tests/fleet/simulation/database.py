"""The file of a hub's database, as others than the hub on its machine use it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from dimos_streams.hub.storage.robots import RobotTable
from dimos_streams.hub.storage.storage import HubStorage, open_engine


class HubDatabase:
    """A hub's database in a directory, and the copy that somebody may have made of it."""

    def __init__(self, directory: Path) -> None:
        self._path, self._copy = directory / "hub.sqlite", directory / "copy.sqlite"

    @property
    def url(self) -> str:
        return f"sqlite:///{self._path}"

    @contextlib.contextmanager
    def robots(self) -> Iterator[RobotTable]:
        """The robots in it, as ``dimos-streams hub robots`` changes them: by a clock of its own."""
        storage = HubStorage(open_engine(self.url))
        try:
            storage.open()
            yield storage.robots
        finally:
            storage.close()

    def copy(self) -> None:
        """Make a copy, in the place of the one that there is."""
        with self._open(self._path) as db, self._open(self._copy) as copy:
            db.backup(copy)

    def put_back(self) -> bool:
        """Put the copy in its place, while no hub runs; return False if there is none."""
        if not self._copy.exists():
            return False
        for beside in ("-wal", "-shm"):
            self._path.with_name(self._path.name + beside).unlink(missing_ok=True)
        shutil.copyfile(self._copy, self._path)
        return True

    def acknowledged(self, robot: str, journal: str) -> int:
        """The offset up to which a journal is on the disk."""
        statement = "SELECT acknowledged FROM journals WHERE robot = ? AND journal = ?"
        with self._open(self._path) as db:
            return max((offset for (offset,) in db.execute(statement, (robot, journal))), default=-1)

    def is_answered(self, robot: str, command: int) -> bool:
        """Return whether an answer to a command is on the disk, or the command is not known."""
        with self._open(self._path) as db:
            rows = db.execute("SELECT outcome FROM commands WHERE robot = ? AND id = ?", (robot, command))
            return all(outcome is not None for (outcome,) in rows)

    @staticmethod
    def _open(path: Path) -> contextlib.closing[sqlite3.Connection]:
        return contextlib.closing(sqlite3.connect(path))
