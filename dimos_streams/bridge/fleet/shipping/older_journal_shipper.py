"""Journals of earlier runs, and files that a failing disk has left: what the hub lacks of them is shipped, too."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from dimos_streams import clock
from dimos_streams.bridge.fleet.attempts import FAILURES, Attempts
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.bridge.fleet.run_journals import journals_in, other_runs
from dimos_streams.bridge.fleet.shipping.older_journal import OlderJournal, is_busy
from dimos_streams.bridge.fleet.shipping.shipper import Shipper
from dimos_streams.common.process.run_owner import is_ended_run
from dimos_streams.common.process.threads import in_executor
from dimos_streams.journal.files.moved_files import left_files, stat_of

_LOOK_S = 60.0
_MAX_FILES = 100
_RECENT_US = 30 * 86_400 * 1_000_000
"""Maximum age, in µs, of a note that a journal is shipped at which a hub surely knows the journal: one that it has
forgotten would be stored there twice."""

_logger = logging.getLogger(__name__)


class OlderJournalShipper:
    """Ships what earlier runs of this robot have left, one after the other, while its own journal is up to date."""

    def __init__(
        self,
        link: LinkContext,
        own: Shipper,
        current: Path | None,
        robot: str,
        process: Callable[[], str],
    ) -> None:
        """``own`` ships the journal that is being written, in the file ``current``; those of earlier runs
        are in the directories beside its own. ``process`` is the name of the hub's process: a new one may have begun
        with a copy that lacks what the one before it had."""
        self._link = link
        self._own = own
        self._current = current
        self._robot = robot
        self._process = process
        self._attempts = Attempts(link, "older journals", initial_s=1.0, longest_s=30.0)
        self._asked: dict[Path, str] = {}
        """The hub's processes that have said last that they have a journal's events."""
        self._bad: dict[Path, None] = {}

    async def run(self) -> None:
        """Look, and ship what there is, until cancelled."""
        seen = self._own.losses
        while self._current is not None:
            while not self._own.state().is_whole:  # noqa: ASYNC110
                await asyncio.sleep(1.0)
            losses = self._own.losses
            for path in await self._find(self._current):
                await self._ship_file(path, again=losses != seen)
                self._attempts.reset()
            seen = losses
            await asyncio.sleep(_LOOK_S)

    async def _find(self, current: Path) -> list[Path]:
        """See ``_files``; none where a failing disk does not say."""
        try:
            return await in_executor(None, self._files, current)
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
                shipper = Shipper(self._link, journal, age_s=0.0)
                await shipper.ship_all()
                self._asked[path] = hub
                # The age of the note is that of the last shipping, after which a hub forgets a journal.
                if shipper.events or not journal.is_shipped:
                    await journal.note_shipped(hub)
                    _logger.info("%s is shipped: %d events", path, shipper.events)
                return
            except FAILURES as error:
                await self._attempts.pause_after(error)
            except OSError as error:  # there is no thread for it
                _logger.info("%s is looked at another time: %s", path, error.strerror)
                return
            except sqlite3.Error as error:
                if is_busy(error):
                    _logger.info("%s is in use, and is looked at another time", path)
                    return
                _logger.warning("%s can't be shipped: %s", path, error)
                self._bad[path] = None

    def _files(self, current: Path) -> list[Path]:
        """The journals that may have something left, oldest first."""
        found = [*left_files(current), *_of_earlier_runs(current)]
        return sorted(dict.fromkeys(found), key=lambda path: (path.parent.name, path.name))[-_MAX_FILES:]


def _of_earlier_runs(current: Path) -> Iterator[Path]:
    """The journals of ended runs; a run that lives ships its own."""
    for run in other_runs(current):
        if is_ended_run(run):
            yield from journals_in(run, current.name)


def _is_recent(path: Path) -> bool:
    found = stat_of(path)  # its run may have been removed just now
    return found is not None and clock.utime() - found.st_mtime_ns // 1000 < _RECENT_US
