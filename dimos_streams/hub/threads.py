"""The threads that wait for a hub's database, in groups: what one group has to do waits for no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

from dimos_streams.hub.storage.rows import StorageUnavailableError

T = TypeVar("T")

ORDERS, PAGES, OTHERS = 2, 3, 4
"""Numbers of threads; each has a connection to the database."""
CONNECTIONS = ORDERS + PAGES + OTHERS + 1
"""Maximum number of connections of one process; one is for notices."""


class HubThreads:
    """The threads of a hub. Whoever reads pages waits for other readers, and nobody else does."""

    def __init__(self) -> None:
        self.orders = ThreadPoolExecutor(ORDERS, thread_name_prefix="hub orders")
        """Threads for commands, an operator's stop above all, their answers, and what is looked up for them."""
        self.pages = ThreadPoolExecutor(PAGES, thread_name_prefix="hub pages")
        """Threads for pages of calls and events, however many clients ask for: only so many are in hand at once."""
        self.others = ThreadPoolExecutor(OTHERS, thread_name_prefix="hub")
        """Threads for what robots ship and report, the feed of their events, and housekeeping."""

    async def close(self) -> None:
        """Wait until all is done that was begun. Twice is fine."""
        await asyncio.to_thread(self._shut_down)  # a database may take a minute for a statement

    def _shut_down(self) -> None:
        for group in (self.orders, self.pages, self.others):
            group.shutdown()


async def in_thread(executor: Executor, work: Callable[..., T], *arguments: object) -> T:
    """Run a function in one of the threads that use the storage, and wait for it."""
    return await asyncio.get_running_loop().run_in_executor(executor, work, *arguments)


@contextlib.asynccontextmanager
async def within(seconds: float) -> AsyncGenerator[None]:
    """Wait for the database no longer than ``seconds``. What a thread has begun goes on, what none has is not done.

    Raises ``StorageUnavailableError``."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise StorageUnavailableError(f"the hub's database has not answered for {seconds:.1f} s") from error
