"""The intake of batches from robots: many are stored in one transaction."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import DimosStreamsError
from dimos_streams.hub.storage.rows import RobotBatch, StorageUnavailableError, TakeAnswer, WrongSchemaError
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import in_thread

MAX_WAITING = 20_000
"""Maximum number of entries that wait to be stored; with more, robots are asked to come again."""
_MOST = 10_000
"""Maximum number of entries from which on no batch joins a transaction, which may thus have one batch more."""
_LEAST = 500
"""Minimum of that number: with fewer a transaction costs more than what is in it."""
_LONGEST_S = 0.1
"""Time, in seconds, that a transaction is to take at most where orders wait for it: a stop of a robot waits for
several, each one behind another."""
_PACE_S = (0.05, 2.0)
"""Bounds of the pause, in seconds, that robots are asked to leave between their batches: twice what it takes, at the
pace of the newest transaction, to store that and all that waits, within these."""

_COME_AGAIN_S = 60.0
"""Seconds within which a robot comes again with what could not be stored: after its longest pause, and a moment."""

_log = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class HubBusyError(DimosStreamsError):
    """Raised if more waits to be stored than may."""


class BatchIntake:
    """Stores batches: all that have come during one transaction are stored in the next one."""

    def __init__(
        self, storage: HubStorage, executor: Executor, stored: Callable[[], None], *, holds_up_orders: bool
    ) -> None:
        """``stored`` is called when there are new events. ``holds_up_orders`` is for a database in which nobody else
        writes during a transaction."""
        self.entries = 0
        """Number of entries that were stored, or had been stored before."""
        self.bytes = 0
        """The bytes that those take at most."""
        self.pace_s = _PACE_S[0]
        """The pause, in seconds, that robots had better leave between their batches."""
        self._storage = storage
        self._executor = executor
        self._stored = stored
        self._waiting: deque[tuple[RobotBatch, asyncio.Future[TakeAnswer]]] = deque()
        self._failed: tuple[str, float] | None = None
        """The reason why the newest transaction failed, and the time until which that counts."""
        self._count = 0
        """Number of entries in ``_waiting``, at most ``MAX_WAITING``."""
        self._holds_up_orders = holds_up_orders
        self._most = min(_LEAST, _MOST) if holds_up_orders else _MOST
        """Number of entries from which on no further batch joins the next transaction."""
        self._has_come = asyncio.Event()
        self._has_stored = asyncio.Event()

    @property
    def trouble(self) -> str:
        """The reason why the newest transaction failed; empty if it did not, or if no robot has come again with what
        it was to store: they have gone. Tables of another version stay what they are."""
        why, until = self._failed or ("", 0.0)
        return why if clock.monotonic() < until else ""

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

    async def until_bytes(self, count: int) -> None:
        """Wait until ``bytes`` is no less than that."""
        while self.bytes < count:
            self._has_stored.clear()
            await self._has_stored.wait()

    async def run(self) -> None:
        """Store what waits, until cancelled."""
        while True:
            await self._has_come.wait()
            group = self._next()
            began = clock.monotonic()
            try:
                answers = await in_thread(self._executor, self._storage.store, [batch for batch, _ in group])
            except DimosStreamsError as error:
                stays = isinstance(error, WrongSchemaError)
                self._failed = str(error), math.inf if stays else clock.monotonic() + _COME_AGAIN_S
                _log.warning("events can't be stored, robots keep theirs: %s", error)
                self._fail(group, error)
            except Exception as error:
                self._fail(group, StorageUnavailableError("an internal error of the hub; its log has it"))
                self._failed = "an internal error", clock.monotonic() + _COME_AGAIN_S
                _log.exception("events can't be stored: %r", error)
            else:
                self._failed = None
                self.entries += sum(len(batch.entries) for batch, _ in group)
                self.bytes += sum(batch.size for batch, _ in group)
                self._has_stored.set()
                for (_, future), each in zip(group, answers, strict=True):
                    if not future.done():  # else the robot is gone
                        future.set_result(each)
                self._stored()
            self._keep_pace(sum(len(batch.entries) for batch, _ in group), clock.monotonic() - began)

    def _keep_pace(self, entries: int, took: float) -> None:
        """Note how long a transaction of ``entries`` entries has taken."""
        if self._holds_up_orders and took > _LONGEST_S:
            self._most = max(int(entries * _LONGEST_S / took), min(_LEAST, _MOST))
        elif entries >= self._most:
            self._most = min(2 * self._most, _MOST)
        self.pace_s = min(max(2 * took * (entries + self._count) / entries, _PACE_S[0]), _PACE_S[1])

    def _next(self) -> list[tuple[RobotBatch, asyncio.Future[TakeAnswer]]]:
        group, entries = [], 0
        while self._waiting and entries < self._most:
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
