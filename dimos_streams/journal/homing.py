"""Brings a journal back into a file beside all that goes on, at growing intervals where that fails."""

from __future__ import annotations

import logging
import math
import sqlite3

from dimos_streams import clock
from dimos_streams.journal.files.file_copy import FileCopy, InThread
from dimos_streams.journal.storage import JournalStorage

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 4.0, 60.0
"""Times, in seconds, after a first failure and at most, until it is tried again: what fails may have copied much."""
_logger = logging.getLogger(__name__)


class Homing:
    """Brings a journal back into its file. Use from the journal's thread."""

    def __init__(self, storage: JournalStorage) -> None:
        self._storage = storage
        self._pause_s = 0.0
        self._not_before = -math.inf

    async def attempt(self, in_thread: InThread) -> bool:
        """See ``JournalStorage.come_back``; what is long is done ``in_thread``, and not soon after it has failed."""
        home, db = self._storage.home, self._storage.db
        if home is None or db is None or clock.monotonic() < self._not_before:
            return False
        is_back = await self._bring_back(FileCopy(home, db), in_thread)
        self._pause_s = 0.0 if is_back else min(max(_FIRST_PAUSE_S, 2 * self._pause_s), _LONGEST_PAUSE_S)
        self._not_before = clock.monotonic() + self._pause_s
        return is_back

    async def _bring_back(self, copy: FileCopy, in_thread: InThread) -> bool:
        storage = self._storage
        if not storage.claim_home():
            return False
        try:
            await copy.fill(in_thread)
        except (sqlite3.Error, OSError) as error:
            _logger.warning("the journal can't be kept in %s again: %s", copy.home, error)
            storage.tail.close()
            return False
        else:
            return storage.come_back(copy)
        finally:
            copy.remove()
