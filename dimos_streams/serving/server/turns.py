"""Turns at parsing: a turn of the loop has a slice of time for it, and a client that wants little goes first."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from dimos_streams import clock

SLICE_S = 0.003
"""Time, in seconds, in a turn of the loop for what comes on connections, and as much for what has waited; each gets
one piece of work at least."""
MOST = 16
"""Maximum number of connections in a slice."""


class Client(Protocol):
    """A client that waits for a turn."""

    def go_on(self) -> None:
        """Do a bounded piece of work, and wait again if there is more."""


class Turns:
    """Shares out the slices. Use from one loop only.

    A slice is bounded in time, not in connections alone: what a piece of work costs is the client's choice. Those
    whose request has not begun come before all but one of the others, so that a client that asks for little waits for
    none that sends much, and none waits for ever.
    """

    def __init__(self) -> None:
        self._new: deque[Client] = deque()
        self._others: deque[Client] = deque()
        self._scheduled = False
        self._admitted = 0
        """Number of clients that had something to do in this turn of the loop because something came."""
        self._until = 0.0
        """The end of their slice."""

    def admit(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Return whether a client to whom something came may do a piece of work at once. Else it waits."""
        if self._admitted == 0:
            self._until = clock.monotonic() + SLICE_S
            loop.call_soon(self._begin)
        self._admitted += 1
        return self._admitted == 1 or (self._admitted <= MOST and clock.monotonic() < self._until)

    def wait(self, client: Client, loop: asyncio.AbstractEventLoop, *, is_new: bool) -> None:
        """Have a client go on when its turn comes; ``is_new`` if its request has not begun."""
        (self._new if is_new else self._others).append(client)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._slice, loop)

    def _begin(self) -> None:
        self._admitted = 0

    def _slice(self, loop: asyncio.AbstractEventLoop) -> None:
        until = clock.monotonic() + SLICE_S
        for queue in self._order():
            queue.popleft().go_on()
            if clock.monotonic() >= until:
                break
        self._scheduled = bool(self._new or self._others)
        if self._scheduled:
            loop.call_soon(self._slice, loop)

    def _order(self) -> list[deque[Client]]:
        """The queues from which a slice takes its clients, one after the other; each client once."""
        first = [self._others] if self._others else []
        return (first + [self._new] * len(self._new) + [self._others] * (len(self._others) - 1))[:MOST]
