"""The supervisor of a live run: a process per module or group, restarted by policy, ended in reverse order."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

from dimos_streams import clock
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.wiring import external_channels
from dimos_streams.bus import create_bus
from dimos_streams.bus.url import check_route
from dimos_streams.common.process.threads import in_executor
from dimos_streams.common.secrets import redacted
from dimos_streams.common.tasks import OwnedTasks, ends_within, outlasting
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.runtime.events import OnRunEvent, ProcessView, RunEvent, RunEventKind
from dimos_streams.runtime.live.ending import end_all
from dimos_streams.runtime.live.kept_ports import KeptPorts
from dimos_streams.runtime.live.run_failure import RunFailure
from dimos_streams.runtime.live.silence import SilenceWatch
from dimos_streams.runtime.live.slots import START_BOUND_S, UP, Slot, crowded, overdue, slot_with
from dimos_streams.runtime.liveness import BEAT_S, ModuleReporter
from dimos_streams.runtime.neighbours import Neighbours
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import plan_processes, plan_run, shared_imports
from dimos_streams.runtime.processes.fork_server import explain_start_failure, renew_stale_server, start_forkserver
from dimos_streams.runtime.processes.process import SupervisedProcess, describe_exit
from dimos_streams.runtime.processes.reports import Report
from dimos_streams.runtime.processes.sources import forget_stale_bytecode
from dimos_streams.runtime.processes.worker_task import WorkerTask
from dimos_streams.tool_stream.liveness.heartbeat import process_ended

_logger = logging.getLogger(__name__)

_STOP_HEARD_WITHIN_S = 0.1
_STOPPING = "the run is stopping"


class Supervisor:
    """The supervisor that starts, watches and stops the processes of one blueprint, on the running loop's main
    thread.

    An end that the supervisor has not asked for is a failure. One while the run starts is the run's. Later, a process
    is restarted by its policy, however often, after a pause that doubles up to 5 s while it keeps failing; the
    failure of a ``restart: never`` process is the run's. A process whose loop does not run is reported to the bus as
    hung, and counts as failed after ``RunOptions.hang_bound_s``; one that begins has 30 s. Time spent waiting for a
    processor does not count: a restart would need even more of it.
    """

    def __init__(self, blueprint: Blueprint, options: RunOptions, on_event: OnRunEvent | None = None) -> None:
        self._options = options
        self._on_event = on_event or (lambda event: None)
        logs = options.run_dir / "logs" if options.run_dir else None
        plans = plan_processes(plan_run(blueprint))
        self._slots = [Slot.of(plan, logs) for plan in plans]
        self._ports = KeptPorts(plans)
        self._external = external_channels(blueprint)
        self._failure = RunFailure()
        self._changed = asyncio.Event()
        """Set when a module has become ready, or the run has failed."""
        self._stopping = False
        self._tasks = OwnedTasks()
        self._reporter = ModuleReporter(options.bus_url)
        self._watch = SilenceWatch(self._slots, options, self._reporter, self._emit).run
        self._neighbours = Neighbours(create_bus(options.bus_url), list(blueprint.modules))

    async def start(self) -> None:
        """Start all processes, few at once, and wait until every module is ready.

        Raises ``BusError`` if there is no route to the bus, ``UserError`` if a module of the blueprint runs already,
        or its port can't be had, ``UserError`` or ``ModuleFailedError`` with the first failure; what had started is
        stopped then.
        """
        if self._options.run_dir is not None:
            (self._options.run_dir / "logs").mkdir(exist_ok=True)
        check_route(self._options.bus_url)
        try:
            await self._neighbours.open()
            start_forkserver(shared_imports(slot.plan for slot in self._slots))
            await self._neighbours.refuse()
            await self._ports.take()
            for slot in self._slots:
                while crowded(self._slots):
                    await self._wait_for_change()
                with explain_start_failure():
                    await self._start_process(slot)
            await self._until_ready()
        except BaseException:
            await self.stop()
            raise
        self._tasks.spawn(self._watch(), name="watch")
        self._tasks.spawn(self._watch_for_older_run(), name="watch for an older run")

    async def _until_ready(self) -> None:
        """Wait until all are ready. Raises what fails meanwhile, and ``ModuleFailedError`` if it takes too long."""
        began = clock.monotonic()
        while not all(slot.state == "ready" for slot in self._slots):
            await self._wait_for_change()
            if late := overdue(self._slots, began):
                raise ModuleFailedError(f"not ready within {START_BOUND_S:g} s: {late}")

    async def _wait_for_change(self) -> None:
        """Wait until a module is ready, at most for the time between two heartbeats. Raises what made the run
        fail."""
        self._failure.check()
        self._changed.clear()
        await ends_within(BEAT_S, self._changed.wait())
        self._failure.check()

    async def wait(self) -> None:
        """Wait until the run fails, and raise ``ModuleFailedError`` or ``UserError`` then."""
        await self._failure.wait()

    def expect_stop(self) -> None:
        """Start nothing again from now on: whoever stops the run has told all, and ends their calls first."""
        self._stopping = True

    async def stop(self) -> None:
        """End all processes, of each robot the last started first, within a bound for all. Stopping twice is fine."""
        self._stopping = True
        for slot in self._slots:
            slot.succession.give_up(_STOPPING)
        await self._tasks.end()  # a process that is being forked can be ended only then
        await end_all(self._slots, self._end)
        self._ports.close()
        await self._reporter.close()
        await self._neighbours.close()

    async def _end(self, slot: Slot) -> None:
        async with slot.succession.lock:  # whoever replaces it ends the old process
            if (successor := slot.succession.successor) is not None:
                successor.kill()
            if slot.process is not None and slot.state != "stopped":
                self._emit("stopping", slot)
                await slot.process.end(slot.term_bound_s)
                self._emit("stopped", slot)
            slot.state = "stopped"

    def processes(self) -> list[ProcessView]:
        """Return all processes in the order of their start."""
        return [slot.view() for slot in self._slots]

    def sources(self) -> dict[str, frozenset[Path]]:
        """Return the source files that each process has loaded by itself, by the first of its modules."""
        return {slot.plan.names[0]: frozenset(slot.sources) for slot in self._slots}

    def process_of(self, module: str) -> str:
        """Return the name of the process that has a module. Raises ``UserError`` for an unknown one."""
        return slot_with(self._slots, module).plan.label

    async def restart(self, module: str, reason: str) -> tuple[str, ...]:
        """Restart a module, and those that share its process, with their code as it is on disk now; return their
        names. The process's own name will do as well.

        Their calls are cancelled, for ``reason``. Raises ``UserError`` for an unknown module and for code that can't
        be used; then all goes on as before. Raises ``ModuleFailedError`` if the new code does not become ready.
        Whoever is cancelled meanwhile waits no longer; the restart goes on.
        """
        slot = slot_with(self._slots, module)
        await outlasting(asyncio.create_task(self._renew(slot, reason), name=f"renew:{slot.plan.label}"))
        return slot.plan.names

    def outdate(self, module: str) -> bool:
        """Have the successor of a module's process that imports its code begin anew, as newer code was written since;
        return whether there is one."""
        return slot_with(self._slots, module).succession.outdate()

    async def _renew(self, slot: Slot, reason: str) -> None:
        async with slot.succession.lock:
            while not await self._prepare(slot):
                pass  # newer code was written meanwhile
            self._check_goes_on()
            await self._replace(slot, reason)

    async def _prepare(self, slot: Slot) -> bool:
        """Prepare a successor; return False if the code that it imports is not the newest any more."""
        self._check_goes_on()
        forget_stale_bytecode(slot.sources)
        with explain_start_failure():
            await in_executor(None, renew_stale_server)
        task = slot.task(self._options, self._supplied(), waits=True)
        return await slot.succession.prepare(self._process(slot, task), slot.plan.label)

    def _check_goes_on(self) -> None:
        if self._stopping:
            raise UserError(_STOPPING)

    async def _replace(self, slot: Slot, reason: str) -> None:
        """Put a prepared successor into its place. Raises ``ModuleFailedError`` if it does not become ready."""
        bound_s = slot.term_bound_s
        if slot.restarter is not None:
            slot.restarter.cancel()
        old = slot.succeed(clock.monotonic(), reason)  # whose end is nobody's failure from now on
        self._emit("restarting", slot, text=reason)
        self._emit("starting", slot)
        await slot.hand_over(old, bound_s, reason)

    async def _start_process(self, slot: Slot) -> None:
        first = slot.state == "new"
        slot.take(clock.monotonic())
        self._emit("starting", slot)
        options = self._options
        task = slot.first_task(options, self._slots) if first else slot.task(options, self._supplied())
        slot.process = self._process(slot, task)
        await slot.process.start()
        slot.hear(clock.monotonic())  # time before the fork does not count

    def _process(self, slot: Slot, task: WorkerTask) -> SupervisedProcess:
        process = SupervisedProcess(
            slot.plan,
            replace(task, kept_ports=self._ports.modules),
            lambda report: self._on_report(slot, process, report),
            lambda code: self._on_exit(slot, process, code),
        )
        return process

    def _supplied(self) -> frozenset[str]:
        """Return the channels that something sends to, by the code that runs now."""
        return frozenset(self._external).union(*(slot.outputs for slot in self._slots))

    async def _watch_for_older_run(self) -> None:
        """End this run if an older run began at the same time."""
        met = await self._neighbours.meet(lambda: [process.pid for process in self.processes()])
        await self._neighbours.close()
        if met:
            self._failure.set(UserError(met))

    def _on_report(self, slot: Slot, process: SupervisedProcess, report: Report) -> None:
        slot.note(report)
        if process is slot.succession.successor:
            slot.succession.hear(report)
        elif process is slot.process:
            self._on_progress(slot, report)

    def _on_progress(self, slot: Slot, report: Report) -> None:
        now = clock.monotonic()
        silent_s = now - slot.heard
        slot.hear(now)
        if slot.state == "hung":
            slot.state = "ready"
            self._emit("recovered", slot, text=f"its loop runs again, after {silent_s:.1f} s")
        if report["kind"] == "ready":
            slot.ready.add(report["module"])
            self._emit("ready", slot, module=report["module"])
            if len(slot.ready) == len(slot.plan.modules):
                slot.state, slot.why = "ready", ""
                slot.succession.settle()
            self._changed.set()
        elif report["kind"] == "failed":
            slot.reported, slot.user_error = report["text"], report["user"]

    def _on_exit(self, slot: Slot, process: SupervisedProcess, code: int) -> None:
        if process is slot.succession.successor:
            slot.succession.ended(f"process {slot.plan.label!r} {describe_exit(code, slot.log)}")
        if code == 0:  # it was told to end, perhaps with the whole run, which is heard of within a moment
            self._tasks.spawn(self._judge_later(slot, process), name=f"ended:{slot.plan.label}")
        else:
            self._judge_end(slot, process, code)

    async def _judge_later(self, slot: Slot, process: SupervisedProcess) -> None:
        await asyncio.sleep(_STOP_HEARD_WITHIN_S)
        self._judge_end(slot, process, 0)

    def _judge_end(self, slot: Slot, process: SupervisedProcess, code: int) -> None:
        """Start a process again that has ended although nobody here wanted it, or let the run fail for it."""
        if self._stopping or process is not slot.process:
            return
        text = slot.reported or f"process {slot.plan.label!r} {describe_exit(code, slot.log)}"
        replaced = slot.succession.is_settling  # its failure is not the run's
        if process.last_pid is not None:
            why = f" ({redacted(slot.reported)})" if slot.reported else ""
            self._report_end(slot, process.last_pid, f"{describe_exit(code, None)}{why}")
        slot.succession.settle(text)
        # No module is ever done: an end with code 0 is a failure, too.
        if (slot.state in UP or slot.restarts.count) and slot.plan.restart != "never":
            self._restart_later(slot, text)
        else:
            slot.state, slot.why = "failed", text
            self._emit("failed", slot, text=text)
            if not replaced:
                self._failure.set(slot.failure(text))
                self._changed.set()

    def _report_end(self, slot: Slot, pid: int, how: str) -> None:
        """Have callers learn how the process of their calls has ended; what it logged last is for the log only."""
        report = self._reporter.report(slot.plan.names, pid, process_ended(how))
        self._tasks.spawn(report, name=f"tell the end of {slot.plan.label}")

    def _restart_later(self, slot: Slot, text: str) -> None:
        slot.back_off(text)
        self._emit("restarting", slot, text=slot.why)
        slot.restarter = self._tasks.spawn(self._restart_after_pause(slot), name=f"restart:{slot.plan.label}")

    async def _restart_after_pause(self, slot: Slot) -> None:
        await asyncio.sleep(slot.restarts.pause_s)
        try:
            await self._start_process(slot)
        except Exception as error:
            if not isinstance(error, OSError):  # it says that no process can be had at the moment
                _logger.exception("process %r was not started because of a defect", slot.plan.label)
            unfinished, slot.process = slot.process, None
            if unfinished is not None:
                unfinished.kill()  # else there could be two of it
            self._restart_later(slot, f"it could not be started: {error!r}")

    def _emit(self, kind: RunEventKind, slot: Slot, *, module: str = "", text: str = "") -> None:
        event = RunEvent(kind=kind, process=slot.plan.label, module=module, text=text, log=slot.log)
        try:
            self._on_event(event)
        except Exception:  # what can't be shown must not keep a process from being restarted, or ended
            _logger.exception("%s of process %s could not be shown", kind, slot.plan.label)
