"""One watcher's queue: bounded, events in order, each state behind the events that it contains."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from dimos_streams.bridge.monitor.view import StateView, message
from dimos_streams.operator.agents import is_called

MAX_MESSAGES = 512
MAX_BYTES = 1024 * 1024
"""Maximum bytes of the events that wait; one state and the replies to a few commands come on top."""


class Watcher:
    """The messages that one connection is to be sent. Use from the loop only; close it when done.

    The queue holds events and at most one state. A state takes its place in the queue when it is shown, so events
    that happened before it are sent before it, and no traffic keeps it back. When the queue is full all of it is
    dropped: when the watcher reads on, it gets a ``gap`` and a state that has in it whatever was lost.
    """

    def __init__(self, agent: str | None, *, look: Callable[[], None], forget: Callable[[Watcher], None]) -> None:
        """``look`` asks for a look at the state, soon; ``forget`` is called when the watcher is closed."""
        self.agent = agent
        self.closed = False
        self.gaps = 0
        self._look = look
        self._forget = forget
        self._queue: deque[bytes | StateView] = deque()
        self._bytes = 0
        self._behind = True
        """True if it needs the whole state before any event."""
        self._reads = True
        """True if it would take that state now."""
        self._lost = 0
        self._queued: StateView | None = None
        """The state that was queued last."""
        self._shown: StateView | None = None
        """The state that was taken last; the next one says what is different from it."""
        self._replies: deque[tuple[bytes, Callable[[], None]]] = deque()
        self._update = asyncio.Event()

    def wants(self, agent: str) -> bool:
        """Return whether the events of an agent are to be offered."""
        return self.agent is None or is_called(agent, self.agent)

    @property
    def waiting(self) -> int:
        """Bytes of events in the queue."""
        return self._bytes

    def offer(self, event: bytes) -> None:
        """Queue an event."""
        if self._behind:
            self._lost += bool(self._lost)  # what comes before the first state is in it, and not lost
            return
        self._put(event)
        if len(self._queue) > MAX_MESSAGES or self._bytes > MAX_BYTES:
            self._drop()

    def show(self, view: StateView) -> None:
        """Show the newest state, which contains all that was offered before, and nothing else.

        Call it again and again: while one state waits in the queue, a newer one does not get in.
        """
        if self._behind and self._reads:
            if self._lost:
                self._put(message("gap", lost=self._lost))
            self._behind, self._lost = False, 0
            self._put(view)
        elif not self._behind and self._queued is self._shown and self._is_new(view):
            self._put(view)

    def begin_anew(self) -> None:
        """Forget what waits: it is of another time, and the whole state comes next."""
        self._queue.clear()
        self._bytes = self._lost = 0
        self._behind = self._reads = True
        self._queued = self._shown = None

    def reply(self, message: bytes, taken: Callable[[], None]) -> None:
        """Queue the answer to a command; whoever asks bounds their number by calls of ``taken``."""
        self._replies.append((message, taken))
        self._update.set()

    async def next(self) -> bytes | None:
        """Wait for the next message, without its ``seq``. Returns None when the watcher was closed."""
        while not self.closed:
            if self._replies:
                reply, taken = self._replies.popleft()
                taken()
                return reply
            if self._queue:
                return self._next_message()
            if self._behind:
                self._reads = True
                self._look()
            self._update.clear()
            await self._update.wait()
        return None

    def close(self) -> None:
        """End it: whoever waits in ``next`` gets None. Twice is fine."""
        if not self.closed:
            self.closed = True
            self._queue.clear()
            self._replies.clear()
            self._update.set()
            self._forget(self)

    def _is_new(self, view: StateView) -> bool:
        """Return whether a view differs from the one queued last; something may have changed there and back again."""
        return self._queued is None or (view is not self._queued and view.snapshot != self._queued.snapshot)

    def _put(self, item: bytes | StateView) -> None:
        self._queue.append(item)
        if isinstance(item, bytes):
            self._bytes += len(item)
        else:
            self._queued = item
        self._update.set()

    def _next_message(self) -> bytes:
        item = self._queue.popleft()
        if isinstance(item, bytes):
            self._bytes -= len(item)
            return item
        before, self._shown = self._shown, item
        return item.whole() if before is None else item.since(before)

    def _drop(self) -> None:
        self._lost = sum(isinstance(item, bytes) for item in self._queue)
        self._behind, self._reads = True, False
        self.gaps += 1
        self._queue.clear()
        self._bytes = 0
        self._queued = self._shown = None
