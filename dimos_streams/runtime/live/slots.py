"""A supervisor's places for processes, and what each of them is to run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dimos_streams import clock
from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.wiring import output_channels
from dimos_streams.common.names import robot_of
from dimos_streams.errors import DimosStreamsError, ModuleFailedError, UserError, suggest
from dimos_streams.runtime.events import ProcessState, ProcessView
from dimos_streams.runtime.live.restarts import Restarts
from dimos_streams.runtime.live.succession import Succession
from dimos_streams.runtime.log_names import log_name
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import ProcessPlan
from dimos_streams.runtime.processes.process import SupervisedProcess
from dimos_streams.runtime.processes.reports import Report
from dimos_streams.runtime.processes.worker_task import WorkerTask

START_BOUND_S = 30.0
"""Maximum time, in seconds, that a process that begins may take to become ready, or to get another one of its modules
ready; only time in which it can run counts."""

_TERM_BOUND_S, _HUNG_TERM_BOUND_S = 5.0, 0.5
"""Maximum time, in seconds, that a process may take to end in order, and one whose loop does not run."""
_AT_ONCE = max(4, 2 * (os.cpu_count() or 1))
"""Maximum number of processes that begin at the same time: more only take the cores from each other."""
_EARLY_S = 2.0
"""The time, in seconds, after which a starting process is assumed to wait for something other than a core, so the
next may start."""
UP: tuple[ProcessState, ...] = ("ready", "hung")
"""The states of a process that has become ready."""
_ALIVE = ("starting", *UP)


@dataclass
class Slot:
    """A place for a process; it may hold several, one after another."""

    plan: ProcessPlan
    log: Path | None
    process: SupervisedProcess | None = None
    state: ProcessState = "new"
    restarts: Restarts = field(default_factory=Restarts)
    why: str = ""
    """The reason for its process's last restart, and the time until the next one, or for its failure if it is not
    restarted; empty once the process is ready."""
    heard: float = 0.0
    """The time on the loop's clock at which it was started or last heard of."""
    waited_s: float = 0.0
    """The time, in seconds, that it had waited for a processor by then."""
    ready: set[str] = field(default_factory=set)
    reported: str = ""
    user_error: bool = False
    outputs: frozenset[str] = frozenset()
    """The channels that its modules publish on."""
    live: dict[str, dict[str, str]] = field(default_factory=dict)
    """The settings that an operator has changed, by module; they outlive its process."""
    sources: set[Path] = field(default_factory=set)
    """The files that its processes have loaded by themselves."""
    restarter: asyncio.Task[None] | None = None
    """The task that starts it again after a pause."""
    succession: Succession = field(default_factory=Succession)
    """The replacement of its process on an operator's order."""

    @classmethod
    def of(cls, plan: ProcessPlan, logs: Path | None) -> Slot:
        """Return an empty place."""
        log = logs / f"{log_name(plan.label)}.log" if logs else None
        outputs = (output_channels(each.spec, module_class(each.spec)) for each in plan.modules)
        return cls(plan, log, outputs=frozenset[str]().union(*outputs))

    def view(self) -> ProcessView:
        """Return the process as those who look at the run see it."""
        return ProcessView(
            label=self.plan.label,
            modules=self.plan.names,
            pid=self.process.pid if self.process is not None and self.state in _ALIVE else None,
            state=self.state,
            restarts=self.restarts.count,
            why=self.why,
            failing=self._failing(),
        )

    @property
    def term_bound_s(self) -> float:
        """The seconds in which its process has to end in order."""
        return _HUNG_TERM_BOUND_S if self.state == "hung" else _TERM_BOUND_S

    def _failing(self) -> str:
        if self.succession.is_settling:  # by an operator's order, which says what becomes of it
            return ""
        if self.state == "hung":
            return "its loop does not run"
        if self.state in ("waiting", "starting", "failed"):
            return self.why or "it is not ready"
        return "" if self.restarts.steady else self.restarts.ended_again

    def back_off(self, why: str) -> None:
        """Note that its process is started again, for a reason, after a pause."""
        self.restarts.back_off(why)
        self.state, self.why = "waiting", f"{why}; again in {self.restarts.pause_s:.1f} s"

    def take(self, now: float) -> None:
        """Note that a process begins, or that a successor may begin."""
        self.ready.clear()
        self.reported, self.user_error = "", False
        self.state, self.restarts.began_at = "starting", now
        self.hear(now)

    def succeed(self, now: float, reason: str) -> SupervisedProcess | None:
        """Give the place to the successor, for a reason; return the process that had it."""
        old, self.process = self.process, self.succession.take()
        self.take(now)
        self.restarts.renew()
        self.why = reason
        return old

    async def hand_over(self, old: SupervisedProcess | None, bound_s: float, reason: str) -> None:
        """Let the successor, which has the place already, begin once the old process has ended, unless it is given
        up meanwhile.

        Raises ``ModuleFailedError`` if it does not become ready.
        """
        new, settled = self.process, self.succession.begin()
        assert new is not None
        if self.restarter is not None:
            await asyncio.wait([self.restarter])  # what it forks at this moment can be ended only then
        if old is not None:
            await old.end(bound_s, reason)
        if not settled.done():
            self.hear(clock.monotonic())
            new.begin(self.live)  # all that the old one has taken has been reported
        if why := await settled:
            raise ModuleFailedError(why)

    def note(self, report: Report) -> None:
        """Note what any of its processes reports that the next one has to know."""
        match report["kind"]:
            case "settings":
                self.live[report["module"]] = report["values"]
            case "sources":
                self.sources |= set(map(Path, report["files"]))
            case "prepared":
                self.outputs = frozenset(report["outputs"])

    def failure(self, text: str) -> DimosStreamsError:
        """Return the error of a run that fails because of its process."""
        if self.user_error:
            return UserError(text)
        return ModuleFailedError(f"{text} (log: {self.log})" if self.log else text)

    def hear(self, now: float) -> None:
        """Note a sign of its life."""
        self.heard = now
        self.waited_s = 0.0 if self.process is None else self.process.waited_s

    def stalled_s(self, now: float) -> float:
        """Return the seconds for which it has been silent though it could run: waiting for a processor does not
        count."""
        waited_s = 0.0 if self.process is None else self.process.waited_s - self.waited_s
        return now - self.heard - max(0.0, waited_s)

    def first_task(self, options: RunOptions, slots: Iterable[Slot]) -> WorkerTask:
        """Return the task of its first process, which begins together with those of the other ``slots``."""
        robots = set(map(robot_of, self.plan.names))
        beside = (name for slot in slots if slot is not self for name in slot.plan.names)
        return WorkerTask(self.plan, options, self.log, beside=tuple(n for n in beside if robot_of(n) in robots))

    def task(self, options: RunOptions, supplied: frozenset[str], *, waits: bool = False) -> WorkerTask:
        """Return the task of a later process. ``supplied`` are the channels that something sends to."""
        live = {module: dict(values) for module, values in self.live.items()}
        return WorkerTask(self.plan, options, self.log, live, supplied, waits=waits)


def crowded(slots: Iterable[Slot]) -> bool:
    """Return whether so many processes are about to begin that one more would only take the cores from them."""
    now = clock.monotonic()
    early = [slot for slot in slots if slot.state == "starting" and now - slot.restarts.began_at < _EARLY_S]
    return len(early) >= _AT_ONCE


def overdue(slots: Iterable[Slot], began: float) -> str:
    """Return the modules that are not ready; empty as long as each of their processes may still become ready.

    ``began`` is the time at which all had been started: a process restarted since has no more time than the others.
    """
    now = clock.monotonic()
    unready = [slot for slot in slots if slot.state != "ready"]
    if all((now - began if slot.restarts.count else slot.stalled_s(now)) <= START_BOUND_S for slot in unready):
        return ""
    late = ((slot, name) for slot in unready for name in slot.plan.names if name not in slot.ready)
    return ", ".join(f"{name} (log: {slot.log})" if slot.log else name for slot, name in late)


def slot_with(slots: Sequence[Slot], named: str) -> Slot:
    """Return the place of the process that has a module of this name, or else has the name itself. Raises
    ``UserError``, which names the modules that there are."""
    by_module = {name: slot for slot in slots for name in slot.plan.names}
    places = {slot.plan.label: slot for slot in slots} | by_module
    if named not in places:
        raise UserError(
            f"no module {named!r} is in this run{suggest(named, places)} (modules: {', '.join(by_module)})"
        )
    return places[named]
