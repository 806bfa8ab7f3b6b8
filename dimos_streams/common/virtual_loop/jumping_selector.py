"""The waiting of a loop in virtual time: instead of it, time moves forward."""

from __future__ import annotations

import selectors
from collections.abc import Callable
from typing import Any

_FILES_OF_A_LOOP = 1
"""The number of files that each loop has for itself: the pipe by which other threads wake it."""
_PIPE_EVERY = 16
"""The number of turns of a loop in which it looks into its pipe once."""
_TURNS_AT_ONCE = 500_000
"""The number of turns that a loop may take in one instant, far more than any run needs: a task that goes on without
ever sleeping keeps time from passing."""


class JumpingSelector(selectors.BaseSelector):
    """A selector that moves the loop's time forward instead of waiting, unless only a file could wake the loop.

    A loop whose only file is its own pipe is rarely asked for: what other threads want is among its ready callbacks
    anyway, the pipe has to be emptied and brings signals. Each look is a system call, a twentieth of a run.
    """

    def __init__(self, advance: Callable[[float | None], None], stand_still: Callable[[], None]) -> None:
        """``stand_still`` is called when the loop has taken as many turns as it may without moving forward."""
        self._inner = selectors.DefaultSelector()
        self._advance = advance
        self._stand_still = stand_still
        self._files = self._unseen = self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._unseen += 1
        if timeout is None or self._unseen >= _PIPE_EVERY or self._files > _FILES_OF_A_LOOP:
            self._unseen = 0
            ready = self._inner.select(0)
            if ready:
                return ready
        if timeout is not None and timeout <= 0:
            self._turns += 1
            if self._turns >= _TURNS_AT_ONCE:
                self._turns = 0
                self._stand_still()
            return []
        self._turns = 0
        if timeout is None and self._files > _FILES_OF_A_LOOP:
            return self._inner.select(None)
        self._advance(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._inner.register(fileobj, events, data)
        self._files = len(self._inner.get_map())
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._inner.unregister(fileobj)
        self._files = len(self._inner.get_map())
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def get_map(self) -> Any:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()
