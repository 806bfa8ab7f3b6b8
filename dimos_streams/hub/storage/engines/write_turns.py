"""Turns at writing to a database of which one thread at a time may write."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator


class WriteTurns:
    """Turns in the order in which threads ask for them.

    SQLite itself has no order: a thread that finds another one writing looks again after ever longer pauses, up to a
    tenth of a second, and whoever writes one transaction after the other keeps it out, an operator's stop too.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._asking: deque[threading.Event] = deque()
        """The thread that writes and, behind it, those that wait, each by what it waits for."""

    @contextlib.contextmanager
    def turn(self, within_s: float) -> Iterator[None]:
        """Wait until it is this thread's turn, which lasts until the end of the context. Raises ``TimeoutError``."""
        mine = threading.Event()
        with self._guard:
            self._asking.append(mine)
            self._asking[0].set()
        try:
            if not mine.wait(within_s):
                raise TimeoutError(f"others have been writing to it for {within_s:g} s")
            yield
        finally:
            with self._guard:
                self._asking.remove(mine)
                if self._asking:
                    self._asking[0].set()
