"""Threads of a process: functions that block, beside the loop, and those with which numpy calculates."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, Generic, TypeVar, cast

from dimos_streams import clock
from dimos_streams.errors import DimosStreamsError

T = TypeVar("T")

_NO_MORE = "can't start new thread"
"""The words of Python for a thread that the system refuses; its other reasons are those of a process that ends."""

_MOST_LOOKS = 10_000
"""Maximum number of looks for a thread that ends, which takes the system a few."""


class _Work(threading.local):
    may_block = False
    """True while a function runs that is for a thread beside the loop, in virtual time in the loop's own too."""


_work = _Work()


def outcome_of(function: Callable[..., T], *args: Any) -> T:
    """Call a function whose outcome is for a future. Raises what it raises, and ``RuntimeError`` for a
    ``StopIteration``: no future takes that, and whoever waits would wait for ever."""
    before, _work.may_block = _work.may_block, True
    try:
        return function(*args)
    except StopIteration as error:
        raise RuntimeError(f"{getattr(function, '__qualname__', function)} raised StopIteration") from error
    finally:
        _work.may_block = before


def check_thread(own: int, what: str, instead: str) -> None:
    """Raise ``DimosStreamsError`` if ``what`` is used in another thread than the one with the identifier ``own``.

    So it does for a function that blocks which virtual time runs inline: tests find what would fail on a robot only.
    ``instead`` is what to do in a thread.
    """
    if _work.may_block or threading.get_ident() != own:
        raise DimosStreamsError(f"{what} was used in a thread beside its event loop: there, use {instead}")


async def in_own_thread(function: Callable[..., T], *args: Any) -> T:
    """Run a function in a thread of its own, inline in virtual time, and return what it returns; raises what it
    raises, as ``outcome_of`` does, and ``OSError`` if there is no thread for it.

    For what must not wait until others give up a thread, such as the request that stops a robot. Callers bound how
    many run at once. Whoever is cancelled meanwhile waits no longer; the thread ends in its own time, and the process
    does not wait for it.
    """
    if clock.is_virtual():
        return outcome_of(function, *args)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            settle, outcome = future.set_result, context.run(outcome_of, function, *args)
        except BaseException as error:
            settle, outcome = future.set_exception, error  # type: ignore[assignment]
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(outcome))

    begin_thread(threading.Thread(target=run, name="own thread", daemon=True))
    return await future


class _Queued(Generic[T]):
    """Work for an executor, which can be taken back as long as no thread has begun it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.outcome: Future[T] = Future()

    def __call__(self) -> T | None:
        if not self.outcome.set_running_or_notify_cancel():
            return None
        try:
            result = self._work()
        except BaseException as error:
            self.outcome.set_exception(error)
            raise
        self.outcome.set_result(result)
        return result

    def take_back(self) -> bool:
        """Let go of the work; return False if a thread has begun it."""
        is_taken = self.outcome.cancel()
        if is_taken:
            del self._work  # an executor may keep the rest for long
        return is_taken


def in_executor(executor: Executor | None, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
    """Run a function in a thread of an executor, None for the loop's own, inline in virtual time; the future has what
    ``outcome_of`` returns or raises.

    Raises ``OSError`` if there is no thread for it: then it is never run. An executor that can't begin another thread
    raises, too, but has queued the function, and runs it when one of its threads is free, though nobody waits.
    """
    loop = asyncio.get_running_loop()
    work = partial(contextvars.copy_context().run, outcome_of, function, *args)
    if clock.is_virtual():
        return loop.run_in_executor(executor, work)
    queued = _Queued(work)
    try:
        return cast("asyncio.Future[T]", loop.run_in_executor(executor, queued))  # None is for work taken back
    except RuntimeError as error:
        if queued.take_back():
            raise _no_thread(error) from None
    return asyncio.wrap_future(queued.outcome)


async def see_out(function: Callable[..., T], *args: Any) -> T:
    """Run a function that blocks and ends something, in a thread of the loop's, and return what it returns; raises
    what it raises. It runs here where there is no thread for it: nobody else would end what it ends."""
    try:
        ending = in_executor(None, function, *args)
    except OSError:
        return outcome_of(function, *args)
    return await ending


def check_free_thread() -> None:
    """Raise ``OSError`` unless this process can have another thread now, for libraries that do worse without one. To
    the system's limits a process that is forked is a thread, too."""
    thread = threading.Thread(target=int)
    begin_thread(thread)
    thread.join()
    # Python is done with it a moment before the system is, which counts it until then.
    for _ in range(_MOST_LOOKS):
        if not os.path.exists(f"/proc/self/task/{thread.native_id}"):
            return
        os.sched_yield()


def begin_thread(thread: threading.Thread) -> None:
    """Start a thread. Raises ``OSError`` if there may be no further one, and ``RuntimeError`` for a second start."""
    if thread.ident is not None:
        raise RuntimeError(f"thread {thread.name!r} was started before")
    try:
        thread.start()
    except RuntimeError as error:
        raise _no_thread(error) from None


def _no_thread(error: RuntimeError) -> OSError:
    if str(error) != _NO_MORE:
        return OSError(errno.ECANCELED, f"{error}: those who run it are ending")
    why = f"{error}: no more threads and processes are allowed (`ulimit -u`, limits of a container)"
    return OSError(errno.EAGAIN, why)


def one_thread_for_matrices() -> None:
    """Have numpy use one thread, which is faster for matrices as small as ours. It reads the setting only once, and
    child processes inherit it; one that the environment has is kept."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
