"""The one source of time: the wall, or a virtual time that the event loop keeps itself.

Code asks ``monotonic()`` and ``utime()`` here and sleeps with ``asyncio.sleep``; then the same code runs live
and in virtual time. In virtual time the loop never waits: when nothing is ready it jumps to its next timer.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextvars
import heapq
import itertools
import math
import selectors
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from dimos_streams.common.process.bounded_run import run_bounded
from dimos_streams.common.virtual_loop.bare_handles import BareHandle, BareTimer
from dimos_streams.common.virtual_loop.jumping_selector import JumpingSelector
from dimos_streams.common.waiting import who_waits
from dimos_streams.errors import DimosStreamsError

T = TypeVar("T")

VIRTUAL_EPOCH_US = 1_600_000_000_000_000
"""The beginning of virtual time, in µs since the Unix epoch (2020-09-13 12:26:40 UTC)."""
KNOWN_FROM_US = 1_577_836_800_000_000
"""The beginning of 2020, in µs since the Unix epoch: earlier times are of machines that did not know the time yet."""
SETTLED_AFTER_S = 0.001
"""The time after which, in virtual time, all that an instant has brought about has happened, in seconds: messages in
memory take turns of the loop and no time."""
_FEW_TIMERS = 100
"""The number of timers up to which those that were cancelled may stay, each until it would be due."""
END_BOUND_S = 60.0
"""The virtual time, in seconds, in which all tasks must end after the one that was to be run. It costs little: time
jumps."""


class DeadlockError(DimosStreamsError):
    """Raised when nothing is left in virtual time that could ever wake a task."""


def monotonic() -> float:
    """Return the seconds on the running virtual loop's clock; outside of one, on the system's monotonic clock, which
    other loops go by too, some of them in whole milliseconds."""
    loop = _here.loop if _running else None
    return time.monotonic() if loop is None else loop.now_s


def steady() -> float:
    """Return seconds as ``monotonic`` does, but count the time for which the machine was asleep, too: for what must
    not be done when it is too old."""
    loop = _here.loop if _running else None
    return time.clock_gettime(time.CLOCK_BOOTTIME) if loop is None else loop.time()


def utime() -> int:
    """Microseconds since the Unix epoch, virtual if the running loop's time is."""
    loop = _here.loop if _running else None
    return time.time_ns() // 1000 if loop is None else loop.utime()


def era() -> int:
    """Return the number of the running virtual loop, 0 outside of one. Each loop begins at zero: times of different
    eras can't be compared."""
    loop = _here.loop if _running else None
    return 0 if loop is None else loop.era


def is_virtual() -> bool:
    """Return whether the running loop keeps virtual time."""
    return _here.loop is not None


class _Here(threading.local):
    """The virtual loop that runs in this thread. Asyncio's own answer costs a system call, and each event asks
    often."""

    loop: VirtualTimeLoop | None = None


_here = _Here()
_running: dict[VirtualTimeLoop, None] = {}
"""The running virtual loops of all threads: if there are none, no thread has to look for its own, which costs more
than reading the time."""


class VirtualTimeOverError(DimosStreamsError):
    """Raised when a run in virtual time has gone on for longer than it may."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer instead of waiting for it.

    Work for an executor runs inline, so that a run depends on nothing but its inputs.
    Raises ``DeadlockError`` out of ``run_until_complete`` when no timer and no file could wake anybody.
    """

    _closed: bool
    _debug: bool
    _ready: collections.deque[asyncio.Handle]
    _scheduled: list[tuple[float, int, Any]]
    """A heap of timers by when they are due and by their numbers: Python compares those without asking a timer."""
    _process_events: Callable[[list[tuple[selectors.SelectorKey, int]]], None]
    _selector: JumpingSelector
    _stopping: bool
    _timer_cancelled_count: int
    _eras = itertools.count(1)

    def __init__(self, start_utime: int = VIRTUAL_EPOCH_US, *, limit_s: float | None = None) -> None:
        # Whole microseconds, kept as nanoseconds: adding up floats would make a timer's order depend on how time was
        # cut into jumps, and recordings, whose times are whole microseconds, could not be replayed to the instant.
        self._move_to(0)
        self.era = next(self._eras)
        self._start_utime = start_utime
        self._timers = itertools.count()
        self._limit_ns: float | None = None if limit_s is None else limit_s * 1e9
        super().__init__(JumpingSelector(self._advance, self._stand_still))
        self._clock_resolution = 1e-7

    def run_forever(self) -> None:
        before, _here.loop = _here.loop, self
        _running[self] = None
        try:
            super().run_forever()
        finally:
            _here.loop = before
            if before is not self:
                del _running[self]

    def time(self) -> float:
        return self.now_s

    def utime(self) -> int:
        """The virtual time in µs since the Unix epoch."""
        return self._start_utime + self._now_ns // 1000

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Do what asyncio does, in fewer calls."""
        if self._closed or self._debug:
            return super().call_soon(callback, *args, context=context)
        handle = BareHandle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Do what asyncio does, in fewer calls."""
        return self.call_at(self.now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Set a timer as asyncio does. Timers of one instant run in the order in which they were set: with the heap
        alone their order would depend on all other timers, so that somebody who only looks on could change a run."""
        timer: Any = (asyncio.TimerHandle if self._debug else BareTimer)(when, callback, args, self, context)
        heapq.heappush(self._scheduled, (when, next(self._timers), timer))
        timer._scheduled = True
        return timer  # type: ignore[no-any-return]

    def _run_once(self) -> None:
        """Take one turn as asyncio does, which has timers compare themselves and asks for the time more often."""
        ready, timers = self._ready, self._scheduled
        if timers and (timers[0][2]._cancelled or len(timers) > _FEW_TIMERS):
            self._forget_cancelled_timers()
        timeout: float | None = None
        if ready or self._stopping:
            timeout = 0
        elif timers and timers[0][0] < math.inf:
            timeout = max(0, timers[0][0] - self.now_s)
        if events := self._selector.select(timeout):
            self._process_events(events)
        until = self.now_s + self._clock_resolution
        while timers and timers[0][0] < until:
            timer = heapq.heappop(timers)[2]
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle: Any = ready.popleft()
            if not handle._cancelled:
                try:
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    self._report_failure(handle, error)

    def _report_failure(self, handle: Any, error: BaseException) -> None:
        """Have it handled that a callback has raised an error, as asyncio does."""
        # Each version of asyncio has words of its own for a callback.
        what = asyncio.Handle._repr_info(handle)[1]  # type: ignore[attr-defined]
        context = {"message": f"Exception in callback {what}", "exception": error, "handle": handle}
        if handle._source_traceback:
            context["source_traceback"] = handle._source_traceback
        self.call_exception_handler(context)

    def _forget_cancelled_timers(self) -> None:
        """Take cancelled timers off the top of the heap, and all of them if they are most of many."""
        timers = self._scheduled
        if len(timers) > _FEW_TIMERS and self._timer_cancelled_count * 2 > len(timers):
            for _, _, timer in timers:
                timer._scheduled = not timer._cancelled
            timers[:] = [entry for entry in timers if entry[2]._scheduled]
            heapq.heapify(timers)
            self._timer_cancelled_count = 0
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)[2]._scheduled = False
            self._timer_cancelled_count -= 1

    def _advance(self, timeout: float | None) -> None:
        if timeout is None:
            raise DeadlockError(_report(self, f"nothing is left to wait for after {self.time():g} s of virtual time"))
        self._move_to(self._due_ns(timeout))
        if self._limit_ns is not None and self._now_ns > self._limit_ns:
            self._limit_ns = None  # those that are cancelled now still need time to end
            raise VirtualTimeOverError(_report(self, f"{self.time():g} s of virtual time are over"))

    def _move_to(self, now_ns: int) -> None:
        self._now_ns, self.now_s = now_ns, now_ns / 1e9

    def _stand_still(self) -> None:
        what = f"time stands still at {self.time():g} s of virtual time: something goes on without ever sleeping"
        raise VirtualTimeOverError(_report(self, what))

    def _due_ns(self, timeout: float) -> int:
        """The first whole microsecond at which a timer is due, in ns; less than a tenth of one counts as rounding."""
        return self._now_ns + max(1, math.ceil(timeout * 1e6 - 0.1)) * 1000

    def run_in_executor(  # type: ignore[override]
        self, executor: concurrent.futures.Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def run_virtual(main: Coroutine[Any, Any, T], *, limit_s: float | None = None) -> T:
    """Run a coroutine to its end in virtual time, as ``asyncio.run`` does in wall time.

    Raises ``DeadlockError``, which lists who waits where, if nothing is left that could wake anybody, and
    ``VirtualTimeOverError`` with the same list after ``limit_s`` of virtual time: without it, modules that do
    something periodically would keep a run alive for ever in which nobody gets what they wait for. What other threads
    do meanwhile does not count: virtual time does not wait for them. Raises ``UnendingError`` for tasks that can't be
    cancelled.
    """
    return run_bounded(main, lambda: VirtualTimeLoop(limit_s=limit_s), END_BOUND_S)


def _report(loop: VirtualTimeLoop, what: str) -> str:
    waiting = "".join(f"\n  {line}" for line in who_waits(loop))
    return f"{what}; who waits:{waiting or ' no task'}"
