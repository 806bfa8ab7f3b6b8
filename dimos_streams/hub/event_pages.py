"""Pages of events out of a hub's database, for readers that are behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.hub.storage.rows import KeptRange, StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import in_thread, within
from dimos_streams.journal.catch_up import PAGE, PAGE_BYTES
from dimos_streams.journal.query import Query, QueryBack, Read, ReadBack

AGAIN_S = 1.0
"""Time, in seconds, after which the database is asked again when it has not answered."""
_LOOK_S = 5.0
"""Time, in seconds, for which a reader waits to learn whether the sequence has its number."""

_log = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class SequenceLog:
    """The bounds of the sequence as far as this hub has read it: an ``OffsetLog``."""

    def __init__(self, bounds: KeptRange) -> None:
        self.bounds = bounds

    @property
    def first_offset(self) -> int:
        """See ``OffsetLog``."""
        return self.bounds.first

    @property
    def last_offset(self) -> int:
        """See ``OffsetLog``."""
        return self.bounds.last


class StoragePages:
    """Reads what is not in memory any more: ``Pages``. While the database does not answer, readers wait."""

    def __init__(
        self, storage: HubStorage, executor: Executor, log: SequenceLog, on_behind: Callable[[], None]
    ) -> None:
        """``on_behind`` is called when the database has more than was published here."""
        self._storage = storage
        self._executor = executor
        self._log = log
        self._on_behind = on_behind
        self._closed = False

    async def page(self, query: Query) -> Read:
        """See ``Pages``."""
        while not self._closed:
            try:
                last = self._log.last_offset
                read = await in_thread(self._executor, self._storage.read, query, PAGE, PAGE_BYTES, last)
                if query.after < max(read.upto, read.first - 1):
                    return read
                _log.warning("the database lacks events behind number %d that it had, readers wait", query.after)
            except StorageUnavailableError as error:
                _log.warning("events can't be read, readers wait: %s", error)
            await asyncio.sleep(AGAIN_S)
        return query.nothing(None)

    async def page_back(self, query: QueryBack, limit: int, max_bytes: int) -> ReadBack:
        """See ``Pages``. Raises ``StorageUnavailableError``: a reader that looks back can ask again."""
        return await in_thread(self._executor, self._storage.read_back, query, limit, max_bytes)

    async def may_have(self, offset: int) -> bool:
        """See ``Pages``: another hub may have read further. What the database does not say now may be so."""
        try:
            async with within(_LOOK_S):
                bounds = await in_thread(self._executor, self._storage.bounds)
        except StorageUnavailableError as error:
            _log.warning("whether the sequence has number %d can't be read, its reader waits: %s", offset, error)
            return True
        if offset > bounds.last:
            return False
        self._on_behind()
        return True

    def close(self) -> None:
        """See ``Pages``."""
        self._closed = True
