"""The warning about a module that takes long to start."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import Iterator

from dimos_streams.common.process.threads import begin_thread
from dimos_streams.common.waiting import what_the_loop_runs, where_it_waits

_logger = logging.getLogger(__name__)

_SLOW_START_S = 5.0


@contextlib.contextmanager
def warn_if_slow(starting: asyncio.Task[None], name: str) -> Iterator[None]:
    """Log, once, where a module is that has not started after a while: by a thread, as it may block the loop."""
    loop_thread = threading.get_ident()

    def log() -> None:
        blocks = getattr(starting.get_coro(), "cr_running", False)
        runs = what_the_loop_runs(sys._current_frames().get(loop_thread)) if blocks else []
        where = runs[0] if runs else where_it_waits(starting)
        text = "module %s has not started after %g s: %s; what takes longer belongs in its run()"
        _logger.warning(text, name, _SLOW_START_S, where)

    timer = threading.Timer(_SLOW_START_S, log)
    timer.daemon = True
    with contextlib.suppress(OSError):  # the module starts all the same, and no line says what it waits for
        begin_thread(timer)
    try:
        yield
    finally:
        timer.cancel()
