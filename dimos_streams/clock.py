"""The one source of time: the wall, or a virtual time that the event loop keeps itself.

Code asks ``monotonic()`` and ``utime()`` here and sleeps with ``asyncio.sleep``; then the same code runs live
and in virtual time. In virtual time the loop never waits: when nothing is ready it jumps to its next timer.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from dimos_streams.errors import DimosStreamsError

T = TypeVar("T")

VIRTUAL_EPOCH_US = 1_600_000_000_000_000
"""Where virtual time begins, in µs since the Unix epoch (2020-09-13 12:26:40 UTC)."""


class DeadlockError(DimosStreamsError):
    """In virtual time nothing is left that could ever wake a task."""


def monotonic() -> float:
    """Seconds on the running loop's clock; outside of a loop, on the system's monotonic clock."""
    loop = _running_loop()
    return loop.time() if loop is not None else time.monotonic()


def utime() -> int:
    """Microseconds since the Unix epoch, virtual if the running loop's time is."""
    loop = _running_loop()
    if isinstance(loop, VirtualTimeLoop):
        return loop.utime()
    return time.time_ns() // 1000


def is_virtual() -> bool:
    """Whether the running loop keeps virtual time."""
    return isinstance(_running_loop(), VirtualTimeLoop)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _JumpingSelector(selectors.BaseSelector):
    """A selector whose waiting is to move the loop's time forward."""

    def __init__(self, advance: Callable[[float | None], None]) -> None:
        self._inner = selectors.DefaultSelector()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._inner.select(0)
        if not ready and (timeout is None or timeout > 0):
            self._advance(timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def get_map(self) -> Any:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer instead of waiting for it.

    Work for an executor runs inline, so that a run depends on nothing but its inputs.
    Raises ``DeadlockError`` out of ``run_until_complete`` when no timer and no file could wake anybody.
    """

    def __init__(self, start_utime: int = VIRTUAL_EPOCH_US) -> None:
        # Whole nanoseconds: adding up floats would make a timer's order depend on how time was cut into jumps.
        self._now_ns = 0
        self._start_utime = start_utime
        super().__init__(_JumpingSelector(self._advance))
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._now_ns / 1e9

    def utime(self) -> int:
        """Virtual µs since the Unix epoch."""
        return self._start_utime + self._now_ns // 1000

    def _advance(self, timeout: float | None) -> None:
        if timeout is None:
            raise DeadlockError(f"nothing is left to wait for; waiting: {self._who_waits()}")
        self._now_ns += max(1, round(timeout * 1e9))

    def _who_waits(self) -> str:
        lines = []
        for task in asyncio.all_tasks(self):
            stack = task.get_stack(limit=1)
            where = f"{stack[-1].f_code.co_qualname}:{stack[-1].f_lineno}" if stack else "not started"
            lines.append(f"{task.get_name()} at {where}")
        return "; ".join(sorted(lines)) or "no task"

    def run_in_executor(  # type: ignore[override]
        self, executor: concurrent.futures.Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def run_virtual(main: Coroutine[Any, Any, T], *, start_utime: int = VIRTUAL_EPOCH_US) -> T:
    """Run a coroutine to its end in virtual time, as ``asyncio.run`` does in wall time.

    Raises ``DeadlockError`` if it waits for something that can't come.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(start_utime)) as runner:
        return runner.run(main)
