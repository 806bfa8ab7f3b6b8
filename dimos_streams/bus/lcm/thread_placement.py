"""The processor of LCM's receiving thread (Linux).

A message goes from its sender over this thread and the loop to a reader. Left alone on few processors, the scheduler
moves loop and reader for four messages of five, and each begins with nothing in its caches. A thread that stays
keeps the others in their places, too: they are then moved for one message of twenty.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import NamedTuple

from dimos_streams import clock

_CLOSE_S = 0.02
"""Maximum time between two messages, in seconds, at which holding pays."""
_STEADY_S = 0.2
"""How long they must have come so close, in seconds: what comes together ten times a second is not held for."""
_MANY = 8
"""Number of messages in one reading from which on thread and loop are better off with a processor each."""
_AFTER_MANY_S = 1.0
"""How long the thread is left to the scheduler then, in seconds."""
_LOOK_S = 0.05
"""How often a held thread is looked at, in seconds: so long it may wait for a processor that a real-time process has
taken."""
_WAITED_S = 0.01
"""The sum of its waits for the processor between two looks, in seconds, that is too much."""
_AFTER_WAITS_S = 10.0
"""How long it is left to the scheduler then, in seconds."""
_TASKS = Path("/proc/self/task")

_logger = logging.getLogger(__name__)


def threads() -> set[int]:
    """Return the ids of this process's threads; none on a system that does not tell them."""
    try:
        return {int(task.name) for task in _TASKS.iterdir()}
    except OSError:
        return set()


def is_runnable(thread: int) -> bool:
    """Return whether a thread of this process runs or waits for a processor: False while it waits for anything else,
    if it has ended, and on a system that does not tell."""
    try:
        return _ThreadState.of(thread).is_runnable
    except OSError:
        return False


class _ThreadState(NamedTuple):
    waited_s: float
    """How long it has waited for a processor since it began, in seconds."""
    is_runnable: bool
    processor: int
    """The processor on which it runs or last ran."""

    @classmethod
    def of(cls, thread: int) -> _ThreadState:
        """Read it, see proc_pid_stat(5) and proc_pid_schedstat(5). Raises ``OSError`` if the thread has ended or the
        system does not tell."""
        waited_ns = int((_TASKS / str(thread) / "schedstat").read_bytes().split()[1])
        # Its name, which stands before them, may be any bytes: that of a script is cut in the midst of a character.
        statistics = (_TASKS / str(thread) / "stat").read_bytes().rpartition(b")")[2].split()
        return cls(waited_ns / 1e9, statistics[0] == b"R", int(statistics[36]))


class ThreadPlacement:
    """Holds a thread on the processor where it runs while messages come one by one."""

    def __init__(self, thread: int | None, loop: asyncio.AbstractEventLoop) -> None:
        """``thread`` is the thread's id; None if it is not known, and then nothing is held."""
        self._thread = thread if hasattr(os, "sched_setaffinity") else None
        self._loop = loop
        self._noted_at = self._looked_at = self._free_until = float("-inf")
        self._close_since = 0.0
        self._held: _ThreadState | None = None
        """The state of the thread when it was last looked at; None if it is not held."""
        self._watch: asyncio.TimerHandle | None = None

    def note(self, messages: int, now: float) -> None:
        """Take note of a reading that found a number of ``messages``; ``now`` is in seconds."""
        if now - self._noted_at > _CLOSE_S:
            self._close_since = now
        self._noted_at = now
        if self._held is None:
            if messages == 1 and now - self._close_since >= _STEADY_S and now >= self._free_until:
                self._hold(now)
        elif messages >= _MANY:
            self._release(now + _AFTER_MANY_S)
        elif now - self._looked_at >= _LOOK_S:
            self._look(now)

    def close(self) -> None:
        """Hold the thread no longer. Closing twice is fine."""
        self._release(float("inf"))

    def _hold(self, now: float) -> None:
        state = self._state()
        if state is None or self._thread is None or len(os.sched_getaffinity(0)) == 1:
            return
        try:
            os.sched_setaffinity(self._thread, {state.processor})
        except OSError as error:
            self._leave(error)
        else:
            self._held, self._looked_at = state, now
            self._watch = self._loop.call_later(_LOOK_S, self._watch_silence)

    def _look(self, now: float) -> None:
        """See how long the thread had to wait. That is done behind a message, when none is expected."""
        before, self._held = self._held, self._state()
        self._looked_at = now
        if before is not None and self._held is not None and self._held.waited_s - before.waited_s > _WAITED_S:
            self._release(now + _AFTER_WAITS_S)

    def _watch_silence(self) -> None:
        """Let the thread go if no message came: perhaps it waits for its processor all the time."""
        now = clock.monotonic()
        if self._held is not None and now - self._noted_at < _LOOK_S:
            self._watch = self._loop.call_later(_LOOK_S, self._watch_silence)
        elif state := self._state():
            self._release(now + _AFTER_WAITS_S if state.is_runnable else now)

    def _release(self, free_until: float) -> None:
        self._free_until = free_until
        if self._watch is not None:
            self._watch.cancel()
        if self._held is None or self._thread is None:
            return
        self._held = None
        try:
            os.sched_setaffinity(self._thread, os.sched_getaffinity(0))
        except OSError as error:
            self._leave(error)

    def _state(self) -> _ThreadState | None:
        if self._thread is None:
            return None
        try:
            return _ThreadState.of(self._thread)
        except OSError as error:
            self._leave(error)
            return None

    def _leave(self, error: OSError) -> None:
        _logger.info("LCM's thread is left to the scheduler: %s", error)
        self._thread = self._held = None
