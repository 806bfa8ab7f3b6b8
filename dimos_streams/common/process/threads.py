"""Functions that block, beside the loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from dimos_streams import clock

T = TypeVar("T")


def outcome_of(function: Callable[..., T], *args: Any) -> T:
    """Call a function whose outcome is for a future. Raises what it raises, and ``RuntimeError`` for a
    ``StopIteration``: no future takes that, and whoever waits would wait for ever."""
    try:
        return function(*args)
    except StopIteration as error:
        raise RuntimeError(f"{getattr(function, '__qualname__', function)} raised StopIteration") from error


async def in_own_thread(function: Callable[..., T], *args: Any) -> T:
    """Run a function in a thread of its own, inline in virtual time, and return what it returns; raises what it
    raises, as ``outcome_of`` does.

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

    threading.Thread(target=run, name="own thread", daemon=True).start()
    return await future
