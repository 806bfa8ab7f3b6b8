"""Journals of earlier runs, and files that a failing disk has left: what the hub lacks of them is shipped, too."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from dimos_streams import clock
from dimos_streams.bridge.fleet.attempts import FAILURES, Attempts
from dimos_streams.bridge.fleet.ended_calls import close_open_calls
from dimos_streams.bridge.fleet.hub_requests import HubRequests
from dimos_streams.bridge.fleet.shipper import Shipper
from dimos_streams.bridge.fleet.troubles import Troubles
from dimos_streams.common.process.run_owner import OWNER_FILE, is_ended_run
from dimos_streams.journal import tables
from dimos_streams.journal.catch_up import PAGE, PAGE_BYTES
from dimos_streams.journal.moved_files import left_files, stat_of
from dimos_streams.journal.query import Query, Read
from dimos_streams.journal.tables import Identity
from dimos_streams.journal.tail import left_in_tail

T = TypeVar("T")

ROBOT_NOTE = "fleet/robot"
"""The name of a journal's note that says as which robot it is shipped."""
_SHIPPED_NOTE = "fleet/shipped"
"""The name of a journal's note of the offset up to which a hub has it, and of the hub's process that has said so."""
_LOOK_S = 60.0
_MAX_FILES = 100
_RECENT_US = 30 * 86_400 * 1_000_000
"""Maximum age, in µs, of a note that a journal is shipped at which a hub surely knows the journal: one that it has
forgotten would be stored there twice."""

_logger = logging.getLogger(__name__)


class OlderJournal:
    """A journal that nobody writes any more: a ``JournalSource``. Its file is opened for each page."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identity = Identity("", 1)
        self.last_offset = 0
        self.robot = ""
        self.is_shipped = True
        self.hub = ""
        """The name of the hub's process that has said that it has all of it; empty if none has, or had no name."""

    @property
    def resumed_at(self) -> int:
        """See ``JournalSource``."""
        return self.last_offset

    async def open(self) -> None:
        """Look at what is in it. Raises ``sqlite3.Error``."""
        await self._in_file(self._look)

    def _look(self, db: sqlite3.Connection) -> None:
        notes, found, ends = tables.notes(db, "fleet/"), tables.identity(db), tables.offsets(db)
        if found is not None and ends is not None and (rows := left_in_tail(self.path, found.journal_id, ends[1])):
            tables.write(db, rows)
            ends = tables.offsets(db)
        if found is not None and ends is not None:
            self.identity, self.last_offset, self.robot = found, ends[1], notes.get(ROBOT_NOTE, "")
            shipped, _, hub = notes.get(_SHIPPED_NOTE, "").partition(" ")
            self.is_shipped = shipped == f"{ends[1]}"
            self.hub = hub if self.is_shipped else ""

    async def close_calls(self) -> None:
        """Close what was open when its run ended, unless another process has the file open, which may be the one that
        writes it. Raises ``sqlite3.Error``."""

        def close(db: sqlite3.Connection) -> None:
            if tables.has_open_calls(db):
                _take_alone(db)
                close_open_calls(db, self.last_offset)

        try:
            await self._in_file(close)
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
        await self.open()

    async def read(self, after: int) -> Read:
        """See ``JournalSource``. Raises ``sqlite3.Error``."""
        return await self._in_file(partial(self._page, after))

    def _page(self, after: int, db: sqlite3.Connection) -> Read:
        ends = tables.offsets(db)
        first = self.last_offset + 1 if ends is None else ends[0]
        return Query(after).run(db, first, self.last_offset, PAGE, PAGE_BYTES)

    def rename(self, begin: int) -> None:
        """See ``JournalSource``. Raises ``sqlite3.Error``, also while another process has the file open: whoever
        writes it must not find another name on it."""
        identity = tables.new_identity(begin)
        with contextlib.closing(_connected(self.path)) as db:
            _take_alone(db)
            tables.set_identity(db, identity)
        self.identity = identity

    async def note_shipped(self, hub: str) -> None:
        """Note that the hub has it, so that this process of it is not asked again. Raises ``sqlite3.Error``."""
        await self._in_file(lambda db: tables.set_note(db, _SHIPPED_NOTE, f"{self.last_offset} {hub}".strip()))

    async def _in_file(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with contextlib.closing(_connected(self.path)) as db:
                return work(db)

        return await asyncio.get_running_loop().run_in_executor(None, run)


class OlderJournals:
    """Ships what earlier runs of this robot have left, one after the other, while its own journal is up to date."""

    def __init__(
        self,
        current: Path | None,
        robot: str,
        hub: HubRequests,
        troubles: Troubles,
        *,
        rng: random.Random,
        up_to_date: Callable[[], bool],
        losses: Callable[[], int],
        process: Callable[[], str],
    ) -> None:
        """``current`` is the file of the journal that is being written; those of earlier runs are in the directories
        beside its own. ``losses`` is a count that grows when the hub has lost what it had; ``process`` is the name
        of the hub's process: a new one may have begun with a copy that lacks what the one before it had."""
        self._current = current
        self._robot = robot
        self._hub = hub
        self._troubles = troubles
        self._random = rng
        self._attempts = Attempts("older journals", troubles, rng=rng, initial_s=1.0, longest_s=30.0)
        self._up_to_date = up_to_date
        self._losses = losses
        self._process = process
        self._asked: dict[Path, str] = {}
        """The hub's processes that have said last that they have a journal's events."""
        self._bad: dict[Path, None] = {}

    async def run(self) -> None:
        """Look, and ship what there is, until cancelled."""
        seen = self._losses()
        while self._current is not None:
            while not self._up_to_date():  # noqa: ASYNC110
                await asyncio.sleep(1.0)
            losses = self._losses()
            for path in await self._found(self._current):
                await self._ship_file(path, again=losses != seen)
                self._attempts.succeeded()
            seen = losses
            await asyncio.sleep(_LOOK_S)

    async def _found(self, current: Path) -> list[Path]:
        """See ``_files``; none where a failing disk does not say."""
        try:
            return await asyncio.get_running_loop().run_in_executor(None, self._files, current)
        except OSError as error:
            _logger.warning("journals of earlier runs can't be looked for: %s", error)
            return []

    async def _ship_file(self, path: Path, *, again: bool) -> None:
        """Ship one file to its end, however many attempts that takes; ``again``: also one that the hub had. A file
        that can't be read is left alone."""
        while path not in self._bad:
            try:
                journal = OlderJournal(path)
                await journal.open()
                if journal.robot != self._robot:
                    return
                # What a failing disk has left says less of its calls than the journal that came after it.
                if self._current is not None and path.name == self._current.name:
                    await journal.close_calls()
                hub = self._process()
                is_unasked = hub not in ("", journal.hub, self._asked.get(path))
                if journal.is_shipped and not ((again or is_unasked) and _is_recent(path)):
                    return
                shipper = Shipper(journal, self._hub, self._troubles, rng=self._random, age_s=0.0)
                await shipper.ship_all()
                self._asked[path] = hub
                # The age of the note is that of the last shipping, after which a hub forgets a journal.
                if shipper.events or not journal.is_shipped:
                    await journal.note_shipped(hub)
                    _logger.info("%s is shipped: %d events", path, shipper.events)
                return
            except FAILURES as error:
                await self._attempts.failed(error)
            except sqlite3.Error as error:
                if _is_busy(error):
                    _logger.info("%s is in use, and is looked at another time", path)
                    return
                _logger.warning("%s can't be shipped: %s", path, error)
                self._bad[path] = None

    def _files(self, current: Path) -> list[Path]:
        """The journals that may have something left, oldest first."""
        found = [*left_files(current), *_of_earlier_runs(current)]
        return sorted(dict.fromkeys(found), key=lambda path: (path.parent.name, path.name))[-_MAX_FILES:]


def _of_earlier_runs(current: Path) -> Iterator[Path]:
    """The journals of ended runs. Runs' directories are beside each other, and each says whose it is; a run that
    lives ships its own."""
    if not (current.parent / OWNER_FILE).exists():
        return
    for owner in current.parent.parent.glob(f"*/{OWNER_FILE}"):
        path = owner.parent / current.name
        if owner.parent != current.parent and is_ended_run(owner.parent):
            yield from left_files(path)
            if path.exists():
                yield path


def _is_recent(path: Path) -> bool:
    found = stat_of(path)  # its run may have been removed just now
    return found is not None and clock.utime() - found.st_mtime_ns // 1000 < _RECENT_US


def _take_alone(db: sqlite3.Connection) -> None:
    """Have the next statement fail at once, as busy, if another process has the file open."""
    db.execute("PRAGMA busy_timeout=0")
    db.execute("PRAGMA locking_mode=EXCLUSIVE")


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=1.0)
