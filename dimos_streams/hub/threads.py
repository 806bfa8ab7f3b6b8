"""The threads that wait for a hub's database, in groups: what one group has to do waits for no other."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from dimos_streams import clock
from dimos_streams.common.process.threads import in_executor, see_out
from dimos_streams.hub.storage.rows import StorageUnavailableError

T = TypeVar("T")

ORDERS, PAGES, OTHERS, UPKEEP = 2, 3, 3, 1
"""Numbers of threads; each has a connection to the database."""
CONNECTIONS = ORDERS + PAGES + OTHERS + UPKEEP + 1
"""Maximum number of connections of one process; one is for notices."""


class TimedThreads(ThreadPoolExecutor):
    """Threads that know for how long they have been at work."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self._began: dict[int, float] = {}
        """The times at which the threads that are at work have begun."""

    @property
    def longest_s(self) -> float:
        """The time, in seconds, that the work has taken so far that was begun first; 0 if all are idle."""
        now = clock.monotonic()
        return max((now - began for began in list(self._began.values())), default=0.0)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have a thread call a function."""
        return super().submit(self._run_timed, fn, *args, **kwargs)

    def _run_timed(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        thread = threading.get_ident()
        self._began[thread] = clock.monotonic()
        try:
            return fn(*args, **kwargs)
        finally:
            del self._began[thread]


class HubThreads:
    """The threads of a hub. Whoever reads pages waits for other readers, and nobody else does."""

    def __init__(self) -> None:
        self.orders = TimedThreads(ORDERS, "hub orders")
        """Threads for commands, an operator's stop above all, their answers, and what is looked up for them."""
        self.pages = TimedThreads(PAGES, "hub pages")
        """Threads for pages of calls and events, however many clients ask for: only so many are in hand at once."""
        self.others = TimedThreads(OTHERS, "hub")
        """Threads for what robots ship and report, the feed of their events, and who else is there."""
        self.upkeep = ThreadPoolExecutor(UPKEEP, thread_name_prefix="hub upkeep")
        """The thread that drops what is old, for which it may need long."""

    @property
    def unanswered_s(self) -> float:
        """The time, in seconds, for which the database has owed the oldest answer that is waited for."""
        return max(group.longest_s for group in (self.orders, self.pages, self.others))

    async def close(self) -> None:
        """Wait until all is done that was begun. Twice is fine."""
        await see_out(self._shut_down)  # a database may take a minute for a statement

    def _shut_down(self) -> None:
        for group in (self.orders, self.pages, self.others, self.upkeep):
            group.shutdown()


async def in_thread(executor: Executor, work: Callable[..., T], *arguments: object) -> T:
    """Run a function in one of the threads that use the storage, and wait for it. Raises ``StorageUnavailableError``
    if there is no thread for it."""
    try:
        running = in_executor(executor, work, *arguments)
    except OSError as error:
        raise StorageUnavailableError(f"the hub's database can't be asked: {error.strerror}") from error
    return await running


@contextlib.asynccontextmanager
async def within(seconds: float) -> AsyncGenerator[None]:
    """Wait for the database no longer than ``seconds``. What a thread has begun goes on, what none has is not done.

    Raises ``StorageUnavailableError``."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise StorageUnavailableError(f"the hub's database has not answered for {seconds:.1f} s") from error
