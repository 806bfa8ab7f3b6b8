"""The process side of a live run: hosts its modules and reports to the supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dimos_streams.common.live_loop import run_live
from dimos_streams.common.printable import LogFormatter, show_tracebacks
from dimos_streams.common.secrets import know_environment, redacted
from dimos_streams.errors import BusError, DimosStreamsError, UserError
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import ProcessPlan
from dimos_streams.runtime.processes.memory import give_back_large_blocks
from dimos_streams.runtime.processes.output import write_to
from dimos_streams.runtime.registry import keep_private

EXIT_FAILED = 1
EXIT_ORPHANED = 70
_ORPHAN_GRACE_S = 3.0


@dataclass(frozen=True)
class WorkerTask:
    """The task that a worker is given at its start."""

    process: ProcessPlan
    options: RunOptions
    log: Path | None


def main(task: WorkerTask, reports: Connection) -> None:
    """Run until asked to stop (SIGTERM), a module fails, or the parent has died; for ``Process(target=…)``."""
    # A terminal's Ctrl-C reaches every process; only the supervisor decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_private()
    give_back_large_blocks()
    know_environment(os.environ)
    show_tracebacks()
    _set_up_logging(task)
    sys.exit(run_live(_Worker(task, reports).run()))


class _Worker:
    def __init__(self, task: WorkerTask, reports: Connection) -> None:
        self._task = task
        self._reports = reports

    async def run(self) -> int:
        # A supervisor that hangs must not make its workers wait for it.
        os.set_blocking(self._reports.fileno(), False)
        self._end = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._end.set)
        threading.Thread(target=_outlive_no_parent, args=(loop, self._end), daemon=True).start()
        try:
            return await self._run_modules()
        except Exception as error:
            known = isinstance(error, (UserError, BusError))
            if not known:
                logging.getLogger(__name__).error("%s", error, exc_info=error)
            self._report("failed", text=redacted(_one_line(error)), user=isinstance(error, UserError))
            return EXIT_FAILED

    async def _run_modules(self) -> int:
        from dimos_streams.blueprint.classes import instantiate
        from dimos_streams.bus import create_bus
        from dimos_streams.module import Services
        from dimos_streams.runtime.liveness import beat
        from dimos_streams.runtime.module_host import ModuleHost
        from dimos_streams.runtime.plan import context_for

        services, options = Services(), self._task.options
        real = bus = create_bus(options.bus_url)
        await real.open()
        if options.wrap_bus is not None:
            bus = options.wrap_bus(real, self._task.process.label)
            await bus.open()
        host = ModuleHost(bus)
        beating: asyncio.Task[None] | None = None
        try:
            for plan in self._task.process.modules:
                module = instantiate(plan.spec, context_for(options, services))
                starting = asyncio.ensure_future(host.start(module, plan.topics))
                if not await self._unless_ended(starting):
                    return 0
                self._report("ready", module=plan.spec.name)
            beating = asyncio.create_task(beat(self._beat), name="beat")
            await self._unless_ended(asyncio.ensure_future(host.wait_for_failure()))
        finally:
            if beating is not None:
                beating.cancel()
            await host.stop()
            await bus.close()
            await real.close()
        return 0

    async def _unless_ended(self, work: asyncio.Future[None]) -> bool:
        """Wait for work and pass on its exception; False if the end came first, the work is cancelled then."""
        end = asyncio.ensure_future(self._end.wait())
        both: list[asyncio.Future[Any]] = [work, end]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        end.cancel()
        if work.done():
            work.result()
            return True
        work.cancel()
        await asyncio.wait([work])
        return False

    def _beat(self) -> None:
        # Who does not read hangs itself, and a beat that gets lost then says nothing new to it.
        with contextlib.suppress(OSError):
            self._reports.send_bytes(b'{"kind": "beat"}')

    def _report(self, kind: str, **fields: Any) -> None:
        try:
            self._reports.send_bytes(json.dumps({"kind": kind, **fields}).encode())
        except OSError as error:  # the supervisor has gone; the watching thread ends us
            logging.getLogger(__name__).warning("cannot report %r: %s", kind, error)


def _outlive_no_parent(loop: asyncio.AbstractEventLoop, end: asyncio.Event) -> None:
    parent = parent_process()
    if parent is None:
        return
    parent.join()
    try:
        loop.call_soon_threadsafe(end.set)
    except RuntimeError:  # the loop is closed: the process ends by itself
        return
    threading.Event().wait(_ORPHAN_GRACE_S)
    os._exit(EXIT_ORPHANED)


def _set_up_logging(task: WorkerTask) -> None:
    """Everything that the process writes goes to its log file."""
    if task.log is not None:
        write_to(task.log)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = os.environ.get("DIMOS_STREAMS_LOG_LEVEL", "INFO").upper()
    logging.basicConfig(level=level, handlers=[handler], force=True)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, DimosStreamsError):
        return text
    return " ".join(traceback.format_exception_only(error)[-1].split())
