"""Events at a hub: taken in from robots, many in one transaction, and given out to readers in their sequence."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import DimosStreamsError
from dimos_streams.hub.storage.rows import KeptRange, RobotBatch, StorageUnavailableError, TakeAnswer
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import HubThreads, in_thread, within
from dimos_streams.hub.woken import Woken
from dimos_streams.journal.broadcast import Broadcast
from dimos_streams.journal.catch_up import PAGE, PAGE_BYTES
from dimos_streams.journal.entry import EncodedEntry, gap_entry
from dimos_streams.journal.query import Query, QueryBack, Read, ReadBack

T = TypeVar("T")

MAX_WAITING = 20_000
"""Maximum number of entries that wait to be stored; with more, robots are asked to come again."""
_MOST = 10_000
"""Number of entries from which on no further batch joins a transaction, which may thus have one batch more."""
_AGAIN_S = 1.0
"""Time, in seconds, after which the database is asked again when it has not answered."""
_LOOK_S = 5.0
"""Time, in seconds, for which a reader waits to learn whether the sequence has its number."""
_FEED_EVENTS, _FEED_BYTES = 4096, 4 * 1024 * 1024
"""Maximum number and size, in bytes, of the events that are read from the database and handed to readers at once."""
_PACE_S = (0.05, 2.0)
"""Bounds of the pause, in seconds, that robots are asked to leave between their batches: twice what the newest
transaction has taken, within these."""

_log = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class HubBusyError(DimosStreamsError):
    """Raised if more waits to be stored than may."""


class BatchIntake:
    """Stores batches: all that have come during one transaction are stored in the next one."""

    def __init__(self, storage: HubStorage, executor: Executor, stored: Callable[[], None]) -> None:
        """``stored`` is called when there are new events."""
        self.trouble = ""
        """The reason why the newest transaction failed; empty if it did not."""
        self.entries = 0
        """Number of entries that were stored, or had been stored before."""
        self.pace_s = _PACE_S[0]
        """The pause, in seconds, that robots had better leave between their batches."""
        self._storage = storage
        self._executor = executor
        self._stored = stored
        self._waiting: deque[tuple[RobotBatch, asyncio.Future[TakeAnswer]]] = deque()
        self._count = 0
        """Number of entries in ``_waiting``, at most ``MAX_WAITING``."""
        self._has_come = asyncio.Event()

    async def store(self, batch: RobotBatch) -> TakeAnswer:
        """Store a batch. Raises ``StorageUnavailableError``, in which case it may or may not have been stored,
        ``WrongSchemaError`` and ``HubBusyError``."""
        if self._count + len(batch.entries) > MAX_WAITING:
            raise HubBusyError(f"{self._count} events wait to be stored already; come again later")
        future: asyncio.Future[TakeAnswer] = asyncio.get_running_loop().create_future()
        self._waiting.append((batch, future))
        self._count += len(batch.entries)
        self._has_come.set()
        return await future

    async def run(self) -> None:
        """Store what waits, until cancelled."""
        while True:
            await self._has_come.wait()
            group = self._next()
            began = clock.monotonic()
            try:
                answers = await in_thread(self._executor, self._storage.store, [batch for batch, _ in group])
            except DimosStreamsError as error:
                self.trouble = str(error)
                _log.warning("events can't be stored, robots keep theirs: %s", error)
                self._fail(group, error)
            except Exception as error:
                self._fail(group, StorageUnavailableError("an internal error of the hub; its log has it"))
                self.trouble = "an internal error"
                _log.exception("events can't be stored: %r", error)
            else:
                self.trouble = ""
                self.entries += sum(len(batch.entries) for batch, _ in group)
                for (_, future), each in zip(group, answers, strict=True):
                    if not future.done():  # else the robot is gone
                        future.set_result(each)
                self._stored()
            took = clock.monotonic() - began
            self.pace_s = min(max(2 * took, _PACE_S[0]), _PACE_S[1])

    def _next(self) -> list[tuple[RobotBatch, asyncio.Future[TakeAnswer]]]:
        group, entries = [], 0
        while self._waiting and entries < _MOST:
            batch, future = self._waiting.popleft()
            group.append((batch, future))
            entries += len(batch.entries)
        self._count -= entries
        if not self._waiting:
            self._has_come.clear()
        return group

    @staticmethod
    def _fail(group: list[tuple[RobotBatch, asyncio.Future[TakeAnswer]]], error: DimosStreamsError) -> None:
        for _, future in group:
            if not future.done():
                future.set_exception(error)


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
                return await in_thread(self._executor, self._storage.read, query, PAGE, PAGE_BYTES, last)
            except StorageUnavailableError as error:
                _log.warning("events can't be read, readers wait: %s", error)
                await asyncio.sleep(_AGAIN_S)
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


class EventFeed:
    """Reads what any hub has stored, in its sequence, and hands it to this hub's readers."""

    def __init__(self, storage: HubStorage, threads: HubThreads, bounds: KeptRange) -> None:
        self.log = SequenceLog(bounds)
        self.broadcast = Broadcast(self.log, StoragePages(storage, threads.pages, self.log, self.wake))
        self.trouble = ""
        """The reason why nothing can be read at the moment; empty if it can."""
        self._storage = storage
        self._executor = threads.others
        self._woken = Woken()

    def wake(self) -> None:
        """Note that there may be something new."""
        self._woken.wake()

    def note_first(self, first: int) -> None:
        """Note that events before a number are not kept any more."""
        self.log.bounds = self.log.bounds._replace(first=max(first, self.log.bounds.first))

    async def run(self) -> None:
        """Hand on what is new, until cancelled."""
        while True:
            try:
                while await self._read_on():
                    pass
                self.trouble = ""
            except StorageUnavailableError as error:
                self.trouble = str(error)
                _log.warning("events can't be read: %s", error)
                await asyncio.sleep(_AGAIN_S)
            except Exception as error:  # readers wait for what comes after it
                self.trouble = f"internal error ({type(error).__name__})"
                _log.exception("events can't be read")
                await asyncio.sleep(_AGAIN_S)
            await self._woken.wait()

    async def _read_on(self) -> bool:
        """Hand on a page; return whether there was any."""
        last = self.log.last_offset
        read = await in_thread(self._executor, self._storage.read, Query(last), _FEED_EVENTS, _FEED_BYTES)
        if read.first > last + 1:
            text = f"the events of numbers {last + 1} to {read.first - 1} were dropped before this hub read them"
            self._hand_on([gap_entry(read.first - 1, last + 1, read.first - 1, text, caller=None)])
        if not read.entries:
            return False
        self._hand_on(read.entries)
        return True

    def _hand_on(self, entries: list[EncodedEntry]) -> None:
        self.log.bounds = self.log.bounds._replace(last=entries[-1].offset)
        self.broadcast.publish(entries)
