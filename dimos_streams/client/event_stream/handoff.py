"""Items from a thread to an event loop, bounded: the thread waits for the loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Handoff(Generic[T]):
    """A queue with a thread at one end and a loop at the other.

    ``put`` and ``end`` belong to the thread, everything else to the loop. Unless the queue is full neither side
    takes a lock: the ends of a deque can be used by two threads, and a lock would make each wait for the other's
    turn of the interpreter.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, capacity: int = 1024) -> None:
        self.loop = loop
        self._capacity = capacity
        self._items: deque[T] = deque()
        self._room = threading.Condition()
        self._wants_room = False
        self._waking = False
        self._waiting: asyncio.Future[None] | None = None
        """The future of whoever waits for items. An event of asyncio's has a turn of the interpreter more to it."""
        self._ended = asyncio.Event()
        self._end_said = False
        self._closed = False
        self._error: Exception | None = None
        self.on_room: Callable[[], None] = lambda: None
        """Called on the loop whenever everything was taken."""

    def put(self, items: Sequence[T]) -> None:
        """Hand items over; waits while ``capacity`` or more are there. After ``close`` it does nothing."""
        if len(self._items) >= self._capacity:
            self._wait_for_room()
        if self._closed:
            return
        self._items.extend(items)
        if not self._waking:
            self._waking = True
            self._call(self._wake)

    def put_here(self, items: Sequence[T]) -> bool:
        """Hand items over on the loop itself, when the thread puts nothing; return whether there is room for more."""
        if not self._closed:
            self._items.extend(items)
            self._wake()
        return len(self._items) < self._capacity

    def end(self, error: Exception | None = None) -> None:
        """Say that nothing more comes; the loop's side takes what is there and then sees ``error``, if any."""
        self._error = error
        self._call(self._on_end)

    def close(self) -> None:
        """Take no more: wakes a waiting ``put``. Twice is fine."""
        self._closed = True
        with self._room:
            self._items.clear()
            self._room.notify_all()

    async def ended(self) -> None:
        """Wait for the thread's ``end``."""
        await self._ended.wait()

    async def batch(self) -> list[T]:
        """Wait for items: all that came since the last time, in order. At the end it is empty, or raises the error
        that ``end`` was given."""
        while not self._items:
            if self._end_said:
                if self._error is not None:
                    raise self._error
                return []
            self._waiting = self.loop.create_future()
            await self._waiting
        batch = [self._items.popleft() for _ in range(len(self._items))]
        self.on_room()
        if self._wants_room:
            with self._room:
                self._room.notify_all()
        return batch

    def _wait_for_room(self) -> None:
        with self._room:
            # Said before it looks: whoever makes room from now on takes the lock and so can't be missed.
            self._wants_room = True
            # A put that was under way may have filled it after ``close``, and nobody takes any more then.
            self._room.wait_for(lambda: len(self._items) < self._capacity or self._closed)
            self._wants_room = False

    def _wake(self) -> None:
        self._waking = False
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _call(self, function: object) -> None:
        # The loop may be closed already; then nobody is left to hear of it.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function)  # type: ignore[arg-type]

    def _on_end(self) -> None:
        self._end_said = True
        self._wake()
        self._ended.set()
