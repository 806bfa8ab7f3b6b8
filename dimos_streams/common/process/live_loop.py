"""The event loop of live processes: uvloop's where it is installed, asyncio's elsewhere.

Virtual time has a loop of its own, in ``clock``.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple, Unpack

from dimos_streams.common.process.bounded_run import run_bounded

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LONGEST_S = 1e8
_THREADS = 32
"""Number of functions that may block at once (``Module.run_blocking``). Python's own number hangs on the machine's
processors: on two of them six skills that wait for a camera would keep all others waiting."""
_SWITCH_S = 0.0005
"""Seconds after which a thread that computes lets the loop go on. The loop waits for that whenever it had let go of
the interpreter's lock, some times in each turn: with Python's own 5 ms, a page that a thread reads stops it for 0.3
s."""

_END_BOUND_S = 3.0
"""Seconds in which all tasks and threads must end after the coroutine that was to be run: `stop` waits for longer."""


def run_live(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in wall time, as ``asyncio.run`` does. Threads of the process give way to it.

    Raises ``UnendingError`` for tasks and threads that go on after it.
    """
    sys.setswitchinterval(_SWITCH_S)
    return run_bounded(main, new_live_loop, _END_BOUND_S, executor=ThreadPoolExecutor(_THREADS, "blocking"))


def new_live_loop() -> asyncio.AbstractEventLoop:
    """A loop for this process and thread; make it after a fork, not before."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()

    class PunctualLoop(uvloop.Loop):
        """Its timers are never early, and all of them are ``TimerHandle``s, as asyncio's are."""

        def call_later(
            self,
            delay: float,
            callback: Callable[[Unpack[Ts]], object],
            *args: *Ts,
            context: contextvars.Context | None = None,
        ) -> asyncio.TimerHandle:
            # uvloop counts whole milliseconds and rounds to the nearest: code that looks at the clock when a timer
            # fires, finds that it is not yet time, and waits for no other would wait for ever.
            whole_ms = math.ceil(min(max(delay, 0.0), _LONGEST_S) * 1000) + 1
            return super().call_later(whole_ms / 1000, callback, *args, context=context)

    return PunctualLoop()
