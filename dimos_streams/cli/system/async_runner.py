"""The run of a command's coroutine, which a signal can end at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from dimos_streams import clock
from dimos_streams.cli.system import signals
from dimos_streams.common.process.live_loop import run_live
from dimos_streams.errors import OutputError

T = TypeVar("T")
_OF_GONE_READERS = (signal.SIGPIPE, signal.SIGHUP)


def run_async(main: Coroutine[Any, Any, T], *, virtual: bool = False, hurry: Callable[[], None] | None = None) -> T:
    """Run ``main`` on a loop of its own, in virtual time if wanted.

    The first signal cancels it; when it has cleaned up, ``Interrupted`` is raised. The second calls ``hurry``, and
    the one after that (the second without ``hurry``) ends the process at once. SIGPIPE and SIGHUP, which say that
    nobody reads the output any more, cancel as well, but nobody has asked twice because of them: a terminal that is
    closed sends several. Output that can't be written any more is no error of a command that a signal ends.
    """
    guarded = _run_until_signal(main, hurry)
    return clock.run_virtual(guarded) if virtual else run_live(guarded)


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Do work that must be done whoever cancels us meanwhile; the cancellation is raised when it is done."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


async def _run_until_signal(main: Coroutine[Any, Any, T], hurry: Callable[[], None] | None) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main)
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        # Ctrl-C in `dimos-streams run … | tee` ends tee as well: one that was pressed once makes two signals here.
        asked = sum(each not in _OF_GONE_READERS for each in received)
        if len(received) == 1:
            loop.call_soon_threadsafe(task.cancel)
        elif number in _OF_GONE_READERS or asked == 1:
            return
        elif asked == 2 and hurry is not None:
            loop.call_soon_threadsafe(hurry)
        else:
            os._exit(128 + received[0])

    with signals.handle_with(on_signal):
        try:
            result = await task
        except (asyncio.CancelledError, OutputError):
            if not received:
                raise
    if received:
        raise signals.Interrupted(received[0])
    return result
