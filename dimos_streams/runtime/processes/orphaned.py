"""The end of a worker whose supervisor has died, or has lost it with the forkserver: nobody ends such processes
in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from multiprocessing import parent_process
from typing import TYPE_CHECKING

from dimos_streams.common.process.threads import begin_thread

if TYPE_CHECKING:
    from dimos_streams.tool_stream.gateway import SkillGateway

EXIT_ORPHANED = 70
FORKSERVER_ENDED = "the process from which all others of the run are forked has ended, and they with it"
"""The reason that callers hear of a process whose end its supervisor could not be told any more."""
_GRACE_S = 3.0
_LAST_ENDS_S = 1.0


def run_died(machine: str) -> str:
    """Return the reason that callers hear of a process whose supervisor has died: that of a run, or of its part on a
    machine if it has several."""
    which = f"the part of the run on {machine}" if machine else "the run"
    return f"{which} has died: its main process ended without stopping it"


def watch_parent(on_orphaned: Callable[[], None]) -> None:
    """Call a function on the running loop when the parent of this process has died or let go of it; a little later
    the process exits, whatever it is doing. Raises ``OSError`` if there is no thread that could see to it."""
    loop = asyncio.get_running_loop()
    begin_thread(threading.Thread(target=_outlive_no_parent, args=(loop, on_orphaned), daemon=True))


def _outlive_no_parent(loop: asyncio.AbstractEventLoop, on_orphaned: Callable[[], None]) -> None:
    parent = parent_process()
    if parent is None:
        return
    parent.join()
    try:
        loop.call_soon_threadsafe(on_orphaned)
    except RuntimeError:  # the loop is closed: the process ends by itself
        return
    threading.Event().wait(_GRACE_S)
    os._exit(EXIT_ORPHANED)


async def hear_last_ends(gateway: SkillGateway) -> None:
    """Let an orphaned bridge pass on, within a bound, how the calls of all other processes end, which end at the same
    moment: its readers wait for that."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_ENDS_S):
            while await gateway.calls(open_only=True):  # noqa: ASYNC110 - nobody signals it
                await asyncio.sleep(0.02)
