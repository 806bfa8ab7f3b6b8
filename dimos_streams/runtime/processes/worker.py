"""The process side of a live run: hosts its modules and reports to the supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import traceback
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.names import robot_of
from dimos_streams.common.printable import LogFormatter, show_tracebacks
from dimos_streams.common.process.collector import keep_all_that_is_there
from dimos_streams.common.process.internal_error import logs_are_shown_by
from dimos_streams.common.process.live_loop import run_live
from dimos_streams.common.process.log_settings import log_level
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.secrets import know_environment, redacted
from dimos_streams.common.tasks import end_tasks, first_of
from dimos_streams.errors import BusError, DimosStreamsError, UnendingError, UserError
from dimos_streams.runtime.plan import ChangedSettings
from dimos_streams.runtime.processes.memory import give_back_large_blocks
from dimos_streams.runtime.processes.orphaned import (
    EXIT_ORPHANED,
    FORKSERVER_ENDED,
    hear_last_ends,
    run_died,
    watch_parent,
)
from dimos_streams.runtime.processes.output import write_to
from dimos_streams.runtime.processes.reports import ReportWriter
from dimos_streams.runtime.processes.slow_start import warn_if_slow
from dimos_streams.runtime.processes.sources import LoadedSources
from dimos_streams.runtime.processes.worker_task import STOP, WorkerTask
from dimos_streams.runtime.run_directories import keep_private
from dimos_streams.tool_stream.hosting.unawaited import warn_each_time

if TYPE_CHECKING:
    from dimos_streams.module import Module, Services
    from dimos_streams.runtime.module_host import ModuleHost
    from dimos_streams.runtime.processes.preparation import Prepared

EXIT_FAILED = 1
_LONGEST_REASON = 2_000
"""The most characters of an error that are reported; the log has all of it."""


def main(task: WorkerTask, reports: Connection) -> None:
    """Run until asked to stop (SIGTERM), a module fails, or the parent has died; for ``Process(target=…)``."""
    # A terminal's Ctrl-C and its end reach every process; only the supervisor decides what they mean.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # the server of which this is a fork blocks it
    keep_private()
    name_process(task.process.label)
    give_back_large_blocks()
    know_environment(os.environ)
    show_tracebacks()
    warn_each_time()
    _set_up_logging(task)
    sources = LoadedSources()
    if task.supplied is not None:
        task = _prepare(task, task.supplied, reports, sources)
    try:
        code = run_live(_Worker(task, reports, sources).run())
    except UnendingError as error:
        logging.getLogger(__name__).error("%s", error)
        code = EXIT_FAILED
    sys.exit(code)


def name_process(label: str) -> None:
    """Have the system's tools show this process by its label, as far as they have room: all of a run have one command
    line."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(label, encoding="utf-8")


def _prepare(task: WorkerTask, supplied: frozenset[str], reports: Connection, sources: LoadedSources) -> WorkerTask:
    """Return the task as the code on disk makes it; if it is to wait, once it may begin. Exit if the code is bad."""
    writer = ReportWriter(reports)
    prepared = _check(task, supplied, writer, sources)
    writer.send({"kind": "prepared", "outputs": sorted(prepared.outputs)})
    if task.waits:
        live = _live_when_it_begins(reports)
        if live != task.live:  # its predecessor has taken other settings meanwhile
            task = replace(task, live=live)
            prepared = _check(task, supplied, writer, sources)
    return replace(task, process=prepared.plan)


def _check(task: WorkerTask, supplied: frozenset[str], writer: ReportWriter, sources: LoadedSources) -> Prepared:
    """Return the plan by the code on disk. Exit, with a report of the reason, if the code or its settings are bad."""
    from dimos_streams.runtime.processes.preparation import prepare

    try:
        return prepare(task.process, supplied, task.live, ordered=task.waits)
    except Exception as error:
        loaded = {"kind": "sources", "files": sources.new_files()}
        failure = {"kind": "failed", "text": _reason(_problem(error)), "user": True}
        for report in (loaded, failure):
            writer.send(report)
        sys.exit(EXIT_FAILED)


def _live_when_it_begins(reports: Connection) -> ChangedSettings:
    """Wait until the worker may begin; return what operators have set by then. Exit if the supervisor has gone."""
    try:
        live: ChangedSettings = parse_json(reports.recv_bytes())["live"]
    except EOFError:
        sys.exit(EXIT_ORPHANED)
    return live


class _Worker:
    def __init__(self, task: WorkerTask, reports: Connection, sources: LoadedSources) -> None:
        self._task = task
        self._reports = reports
        self._writer = ReportWriter(reports)
        self._sources = sources
        self._stop_reason = ""
        self._is_orphan = False

    async def run(self) -> int:
        # A supervisor that hangs must not make its workers wait for it.
        os.set_blocking(self._reports.fileno(), False)
        self._end = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._on_term)
        try:
            watch_parent(self._on_orphaned)
            return await self._run_modules()
        except Exception as error:
            known = isinstance(error, (UserError, BusError))
            if not known:
                logging.getLogger(__name__).error("%s", error, exc_info=error)
            self._report("failed", text=_reason(_one_line(error)), user=isinstance(error, UserError))
            return EXIT_FAILED

    async def _run_modules(self) -> int:
        from dimos_streams.bus import create_bus
        from dimos_streams.module import Services
        from dimos_streams.runtime.liveness import beat
        from dimos_streams.runtime.module_host import ModuleHost
        from dimos_streams.tool_stream.liveness.heartbeat import STOPS

        options = self._task.options
        real = bus = create_bus(options.bus_url, self._task.process.delivery)
        await real.open()
        if options.wrap_bus is not None:
            bus = options.wrap_bus(real, self._task.process.label)
            await bus.open()
        services = Services()
        host = ModuleHost(bus, self._task.process.heard_namespaces(options.machine))
        beating: asyncio.Task[None] | None = None
        try:
            if not await self._start_modules(host, services):
                return 0
            self._report_sources()
            keep_all_that_is_there()
            beating = asyncio.create_task(beat(self._beat), name="beat")
            await self._unless_ended(asyncio.ensure_future(host.wait_for_failure()))
        finally:
            if beating is not None:
                beating.cancel()
            await self._hear_last_ends(services)
            await host.stop(self._stop_reason or STOPS)
            await bus.close()
            await real.close()
        return 0

    async def _start_modules(self, host: ModuleHost, services: Services) -> bool:
        """Start one module after the other; return False if the end came first."""
        from dimos_streams.blueprint.classes import instantiate
        from dimos_streams.runtime.plan import context_for
        from dimos_streams.tool_stream.hosting.settings_change import restore_settings

        for plan in self._task.process.modules:
            beside = [name for name in self._task.beside if robot_of(name) == robot_of(plan.spec.name)]
            kept = plan.spec.name in self._task.kept_ports
            context = context_for(
                self._task.options, services, plan, beside, port_is_kept=kept, is_replaced=self._is_replaced
            )
            module = instantiate(plan.spec, context)
            restore_settings(module, self._task.live.get(module.name, {}))
            module.on_live = partial(self._report_settings, module)
            starting = asyncio.ensure_future(host.start(module, plan.topics))
            with warn_if_slow(starting, module.name):
                if not await self._unless_ended(starting):
                    return False
            self._report("ready", module=plan.spec.name)
        return True

    async def _unless_ended(self, work: asyncio.Future[None]) -> bool:
        """Wait for work and pass on its exception. If the end comes first, cancel the work and return False."""
        await first_of(work, self._end)
        if work.done():
            work.result()
            return True
        await end_tasks(work)
        return False

    def _on_term(self) -> None:
        """End, for the reason that the supervisor may have given before."""
        self._read_reason()
        self._end.set()

    def _read_reason(self) -> None:
        with contextlib.suppress(EOFError, OSError):  # it has gone, or has nothing to say
            while self._reports.readable and self._reports.poll():
                command = parse_json(self._reports.recv_bytes())
                if command["kind"] == STOP:
                    self._stop_reason = command["reason"]

    def _on_orphaned(self) -> None:
        """End, because the supervisor has died, unless it has said another reason before it let go."""
        self._read_reason()
        self._stop_reason = self._stop_reason or run_died(self._task.options.machine)
        self._is_orphan = True
        self._end.set()

    def _is_replaced(self) -> bool:
        """Return whether another process takes this one's place: the supervisor gives a reason only then, and one
        that fails, or is lost with the forkserver, is begun again by its policy."""
        if not self._end.is_set() or self._stop_reason == FORKSERVER_ENDED:
            return self._task.process.restart != "never"
        return bool(self._stop_reason) and not self._is_orphan

    async def _hear_last_ends(self, services: Services) -> None:
        """Let an orphaned bridge pass on how calls end, unless other modules stand beside it, whose calls go on."""
        from dimos_streams.tool_stream.gateway import SkillGateway

        gateway = services.get(SkillGateway)  # type: ignore[type-abstract]
        if self._is_orphan and gateway is not None and len(self._task.process.modules) == 1:
            await hear_last_ends(gateway)

    def _report_settings(self, module: Module) -> None:
        from dimos_streams.tool_stream.hosting.settings_change import as_assignments

        self._report("settings", module=module.name, values=as_assignments(module.live_values))

    def _report_sources(self) -> None:
        files = self._sources.new_files()
        if files:
            self._report("sources", files=files)

    def _beat(self) -> None:
        self._report_sources()
        # A supervisor that does not read hangs itself, and a beat that gets lost then would tell it nothing new.
        with contextlib.suppress(OSError):
            if self._writer.flush():
                self._writer.send({"kind": "beat"})

    def _report(self, kind: str, **fields: Any) -> None:
        try:
            self._writer.send({"kind": kind, **fields})
        except (BufferError, OSError) as error:  # if the supervisor has gone, the watching thread ends us
            logging.getLogger(__name__).warning("cannot report %r: %s", kind, error)


def _set_up_logging(task: WorkerTask) -> None:
    """Send everything that the process writes to its log file."""
    if task.log is not None:
        write_to(task.log)
        logs_are_shown_by(task.options.log_selector)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=log_level(os.environ), handlers=[handler], force=True)


def _reason(text: str) -> str:
    """Return what is wrong without secrets, and no longer than anybody reads."""
    return shortened(redacted(text), _LONGEST_REASON)


def _problem(error: Exception) -> str:
    """Return what is wrong with code or settings, a line for each fault."""
    return str(error).strip() if isinstance(error, DimosStreamsError) else _one_line(error)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, DimosStreamsError):
        return text
    return " ".join(traceback.format_exception_only(error)[-1].split())
