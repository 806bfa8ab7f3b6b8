"""Runs a blueprint live: a process per module or group, restarted by policy, ended in reverse order."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dimos_streams import clock
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.bus import create_bus
from dimos_streams.bus.url import check_route
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.runtime.events import OnRunEvent, ProcessView, RunEvent
from dimos_streams.runtime.liveness import BEAT_S, HUNG_AFTER_S, HangReporter
from dimos_streams.runtime.neighbours import Neighbours
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import ProcessPlan, plan_modules, plan_processes
from dimos_streams.runtime.processes.process import Report, SupervisedProcess, describe_exit, start_forkserver
from dimos_streams.runtime.processes.worker import WorkerTask

START_BOUND_S = 30.0
_TERM_BOUND_S = 5.0
_HUNG_TERM_BOUND_S = 0.5
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
_STEADY_AFTER_S = 10.0


_UP = ("ready", "hung")
_ALIVE = ("starting", *_UP)


@dataclass
class _Slot:
    """A place for a process: it may hold several, one after another."""

    plan: ProcessPlan
    log: Path | None
    process: SupervisedProcess | None = None
    state: str = "new"
    restarts: int = 0
    failures_in_a_row: int = 0
    started_at: float = 0.0
    heard: float = 0.0
    """When it was started or heard of last, on the loop's clock."""
    ready: set[str] = field(default_factory=set)
    reported: str = ""
    user_error: bool = False


class Supervisor:
    """Start, watch and stop the processes of one blueprint. Lives on the running loop's main thread.

    A failure while the run starts is the run's failure. Later, a process is restarted by its policy, after a pause
    that doubles up to 5 s while it keeps failing; the failure of a ``restart: never`` process is the run's. A process
    whose loop does not run is reported to the bus as hung, and counts as failed after ``RunOptions.hang_bound_s``.
    """

    def __init__(self, blueprint: Blueprint, options: RunOptions, on_event: OnRunEvent | None = None) -> None:
        self._options = options
        self._on_event = on_event or (lambda event: None)
        logs = options.run_dir / "logs" if options.run_dir else None
        plans = plan_processes(plan_modules(blueprint))
        self._slots = [_Slot(plan, logs / f"{plan.label.replace('/', '.')}.log" if logs else None) for plan in plans]
        self._failed: asyncio.Future[None] | None = None
        self._changed = asyncio.Event()
        self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._hang_reporter = HangReporter(options.bus_url)
        self._neighbours = Neighbours(create_bus(options.bus_url), list(blueprint.modules))

    async def start(self) -> None:
        """Start all processes and wait until every module is ready.

        Raises ``BusError`` if there is no route to the bus, ``UserError`` if a module of the blueprint runs already,
        ``UserError`` or ``ModuleFailedError`` with the first failure; what had started is stopped then.
        """
        self._failed = asyncio.get_running_loop().create_future()
        if self._options.run_dir is not None:
            (self._options.run_dir / "logs").mkdir(exist_ok=True)
        check_route(self._options.bus_url)
        try:
            await self._neighbours.open()
            start_forkserver()
            await self._neighbours.refuse()
            for slot in self._slots:
                await self._start_process(slot)
            async with asyncio.timeout(START_BOUND_S):
                while not all(slot.state == "ready" for slot in self._slots):
                    self._changed.clear()
                    changed = asyncio.ensure_future(self._changed.wait())
                    either: list[asyncio.Future[Any]] = [changed, self._failed]
                    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                    changed.cancel()
                    if self._failed.done():
                        self._failed.result()
        except TimeoutError:
            await self.stop()
            raise ModuleFailedError(f"not ready within {START_BOUND_S:g} s: {self._unready()}") from None
        except BaseException:
            await self.stop()
            raise
        self._spawn(self._watch(), "watch")
        self._spawn(self._meet(), "meet")

    async def wait(self) -> None:
        """Wait until the run fails. Raises ``ModuleFailedError`` or ``UserError`` then."""
        assert self._failed is not None, "start() first"
        await asyncio.shield(self._failed)

    async def stop(self) -> None:
        """End all processes, the last started first, each within a bound. Twice is fine."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        for slot in reversed(self._slots):
            if slot.process is not None and slot.state != "stopped":
                self._emit("stopping", slot)
                await slot.process.end(_HUNG_TERM_BOUND_S if slot.state == "hung" else _TERM_BOUND_S)
                self._emit("stopped", slot)
            slot.state = "stopped"
        await self._hang_reporter.close()
        await self._neighbours.close()
        if self._failed is not None and self._failed.done() and not self._failed.cancelled():
            self._failed.exception()  # it has been reported, or nobody waits for it any more

    def processes(self) -> list[ProcessView]:
        """All processes in the order of their start."""
        return [
            ProcessView(
                label=slot.plan.label,
                modules=tuple(plan.spec.name for plan in slot.plan.modules),
                pid=slot.process.pid if slot.process is not None and slot.state in _ALIVE else None,
                state=slot.state,  # type: ignore[arg-type]
                restarts=slot.restarts,
            )
            for slot in self._slots
        ]

    async def _start_process(self, slot: _Slot) -> None:
        slot.ready.clear()
        slot.reported, slot.user_error = "", False
        slot.state, slot.started_at = "starting", clock.monotonic()
        slot.heard = slot.started_at
        self._emit("starting", slot)
        slot.process = SupervisedProcess(
            slot.plan,
            WorkerTask(slot.plan, self._options, slot.log),
            lambda report: self._on_report(slot, report),
            lambda code: self._on_exit(slot, code),
        )
        await slot.process.start()

    async def _meet(self) -> None:
        """End this run if an elder one began at the same time."""
        met = await self._neighbours.meet(lambda: [process.pid for process in self.processes()])
        await self._neighbours.close()
        assert self._failed is not None
        if met and not self._failed.done():
            self._failed.set_exception(UserError(met))

    async def _watch(self) -> None:
        """Look after processes that fall silent."""
        looked = clock.monotonic()
        while True:
            await asyncio.sleep(BEAT_S)
            now = clock.monotonic()
            if now - looked > HUNG_AFTER_S / 2:
                # This process itself was held up: the beats of that time are still to be read.
                for slot in self._slots:
                    slot.heard = now
            looked = now
            for slot in self._slots:
                await self._judge(slot, now - slot.heard)

    async def _judge(self, slot: _Slot, silent_s: float) -> None:
        assert slot.process is not None
        if slot.state == "starting" and silent_s > START_BOUND_S:
            slot.reported = f"process {slot.plan.label!r} was not ready within {START_BOUND_S:g} s"
            slot.process.kill()
        elif slot.state in _UP and silent_s > self._options.hang_bound_s:
            slot.reported = f"process {slot.plan.label!r} hung for {silent_s:.1f} s"
            slot.process.kill()
        elif slot.state in _UP and silent_s > HUNG_AFTER_S:
            if slot.state == "ready":
                slot.state = "hung"
                self._emit("hung", slot, text="its loop does not run")
            names = [plan.spec.name for plan in slot.plan.modules]
            health = f"hung: the loop has not run for {silent_s:.1f} s"
            await self._hang_reporter.report(names, slot.process.pid or 0, health)

    def _on_report(self, slot: _Slot, report: Report) -> None:
        silent_s, slot.heard = clock.monotonic() - slot.heard, clock.monotonic()
        if slot.state == "hung":
            slot.state = "ready"
            self._emit("recovered", slot, text=f"its loop runs again, after {silent_s:.1f} s")
        if report["kind"] == "ready":
            slot.ready.add(report["module"])
            self._emit("ready", slot, module=report["module"])
            if len(slot.ready) == len(slot.plan.modules):
                slot.state = "ready"
                self._changed.set()
        elif report["kind"] == "failed":
            slot.reported, slot.user_error = report["text"], report["user"]

    def _on_exit(self, slot: _Slot, code: int) -> None:
        if self._stopping:
            return
        was_up = slot.state in _UP
        text = slot.reported or f"process {slot.plan.label!r} {describe_exit(code, slot.log)}"
        policy = slot.plan.restart
        if code == 0 and policy != "always":
            slot.state = "stopped"
            self._emit("stopped", slot, text="it ended by itself")
        elif (was_up or slot.restarts) and policy != "never":
            self._restart_later(slot, text)
        else:
            slot.state = "failed"
            self._emit("failed", slot, text=text)
            self._fail(slot, text)

    def _fail(self, slot: _Slot, text: str) -> None:
        assert self._failed is not None
        if not self._failed.done():
            where = f" (log: {slot.log})" if slot.log and not slot.user_error else ""
            kind = UserError if slot.user_error else ModuleFailedError
            self._failed.set_exception(kind(f"{text}{where}"))

    def _restart_later(self, slot: _Slot, text: str) -> None:
        steady = clock.monotonic() - slot.started_at >= _STEADY_AFTER_S
        slot.failures_in_a_row = 1 if steady else slot.failures_in_a_row + 1
        pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (slot.failures_in_a_row - 1))
        slot.state = "waiting"
        slot.restarts += 1
        self._emit("restarting", slot, text=f"{text}; again in {pause:.1f} s")

        async def restart() -> None:
            await asyncio.sleep(pause)
            try:
                await self._start_process(slot)
            except (OSError, EOFError) as error:  # no process can be had at the moment
                self._restart_later(slot, f"it could not be started: {error!r}")

        self._spawn(restart(), f"restart:{slot.plan.label}")

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _emit(self, kind: str, slot: _Slot, *, module: str = "", text: str = "") -> None:
        event = RunEvent(kind=kind, process=slot.plan.label, module=module, text=text, log=slot.log)  # type: ignore[arg-type]
        self._on_event(event)

    def _unready(self) -> str:
        names = [
            plan.spec.name for slot in self._slots for plan in slot.plan.modules if plan.spec.name not in slot.ready
        ]
        return ", ".join(names)
