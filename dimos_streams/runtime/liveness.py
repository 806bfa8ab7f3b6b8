"""The beats of workers' loops, which tell the hung from the running, and reports on modules that can't speak.

The beats go through the worker's pipe, so that whatever stops the loop stops them: a skill that blocks, code that
keeps the interpreter's lock, a stopped process.
"""

from __future__ import annotations

import asyncio
import linecache
import logging
import sys
import threading
from collections.abc import Callable, Iterable

from dimos_streams import clock
from dimos_streams.bus import Bus, create_bus
from dimos_streams.common.process.threads import begin_thread
from dimos_streams.common.waiting import what_the_loop_runs
from dimos_streams.errors import BusError

BEAT_S = 0.25
HUNG_AFTER_S = 1.0
"""The time, in seconds, after which a process without a beat hangs. Its modules' calls are given up 0.5 s later, as a
dead one's are."""

_REMEDY = ": what blocks belongs in a thread, `await self.run_blocking(f, …)`"
_MOST_CALLERS = 10

_logger = logging.getLogger(__name__)


async def beat(send: Callable[[], None]) -> None:
    """Report that the loop runs, until cancelled. When it does not, the log shows what its thread does instead."""
    witness = _Witness()
    try:
        begin_thread(witness)
    except OSError as error:  # a loop that runs is not to be taken for one that hangs
        _logger.warning("nobody will see where the loop of this process is if it hangs: %s", error.strerror)
    try:
        while True:
            send()
            witness.beats += 1
            before = clock.monotonic()
            await asyncio.sleep(BEAT_S)
            late = clock.monotonic() - before - BEAT_S
            if late > HUNG_AFTER_S:
                _logger.warning("the loop of this process did not run for %.1f s", late)
    finally:
        witness.ended.set()


class _Witness(threading.Thread):
    """A thread that logs, once, where the thread that made it is, when a second has gone by without a beat.

    Not ``faulthandler``: it looks at stacks without the interpreter's lock, and when a stopped process goes on it
    would look at one that runs, which can end the process.
    """

    def __init__(self) -> None:
        super().__init__(name="witness", daemon=True)
        self.beats = 0
        self.ended = threading.Event()
        self._watched = threading.get_ident()

    def run(self) -> None:
        seen = reported = -1
        while not self.ended.wait(HUNG_AFTER_S):
            if self.beats == seen != reported:
                reported = seen
                place, *callers = what_the_loop_runs(sys._current_frames().get(self._watched)) or ["?"]
                linecache.clearcache()  # else all files that the stack goes through are kept, some megabytes
                called = "".join(f"; called by {caller}" for caller in callers[:_MOST_CALLERS])
                _logger.warning(
                    "the loop of this process does not run; its thread is at %s%s%s", place, _REMEDY, called
                )
            seen = self.beats


class ModuleReporter:
    """A reporter for modules that can't report themselves; it opens the bus when there is something to say."""

    def __init__(self, bus_url: str) -> None:
        self._bus_url = bus_url
        self._bus: Bus | None = None
        self._opening = asyncio.Lock()

    async def report(self, modules: Iterable[str], pid: int, health: str) -> None:
        """Report what is wrong with modules.

        A status without an instance is somebody else's word about a module, not a sign of its life.
        """
        from dimos_streams.messages.codec import encode
        from dimos_streams.messages.dimos_streams import ModuleStatus
        from dimos_streams.tool_stream.protocol.channels import STATUS

        bus = await self._open_bus()
        if bus is None:
            return
        for module in modules:
            status = ModuleStatus(utime=clock.utime(), module=module, pid=pid, health=health)
            bus.publish(STATUS, encode(status))

    async def close(self) -> None:
        """Leave the bus. Closing twice is fine."""
        bus, self._bus = self._bus, None
        if bus is not None:
            await bus.close()

    async def _open_bus(self) -> Bus | None:
        async with self._opening:
            if self._bus is None:
                bus = create_bus(self._bus_url)
                try:
                    await bus.open()
                except BusError as error:
                    _logger.warning("it can't be reported: %s", error)
                    return None
                self._bus = bus
            return self._bus
