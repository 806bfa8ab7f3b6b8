"""A supervisor's places for processes, and what each of them is to run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dimos_streams import clock
from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.wiring import output_channels
from dimos_streams.common.namespaces import robot_of
from dimos_streams.errors import UserError, suggest
from dimos_streams.runtime.events import ProcessView
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import ProcessPlan
from dimos_streams.runtime.processes.process import SupervisedProcess
from dimos_streams.runtime.processes.worker import WorkerTask

START_BOUND_S = 30.0
"""A process that begins becomes ready, or has another one of its modules ready, within so much time in which it
can run."""

UP = ("ready", "hung")
"""The states of a process that was ready."""
_ALIVE = ("starting", *UP)


@dataclass
class Slot:
    """A place for a process: it may hold several, one after another."""

    plan: ProcessPlan
    log: Path | None
    process: SupervisedProcess | None = None
    state: str = "new"
    restarts: int = 0
    pause_s: float = 0.0
    """For how long it was waited before the last restart after a failure."""
    why: str = ""
    """Why its process was restarted last, and when it is again; empty once that is ready."""
    started_at: float = 0.0
    heard: float = 0.0
    """When it was started or heard of last, on the loop's clock."""
    waited_s: float = 0.0
    """For how long it had waited for a processor by then."""
    ready: set[str] = field(default_factory=set)
    reported: str = ""
    user_error: bool = False
    outputs: frozenset[str] = frozenset()
    """The channels that its modules publish on."""
    live: dict[str, dict[str, str]] = field(default_factory=dict)
    """The settings that an operator has changed, by module: they outlive its process."""
    sources: set[Path] = field(default_factory=set)
    """The files that its processes have loaded by themselves."""
    restarter: asyncio.Task[None] | None = None
    """Starts it again after a pause."""
    successor: SupervisedProcess | None = None
    """What prepares itself to take the place of the process."""
    prepared: asyncio.Future[None] | None = None
    """Done when that has; with an exception if it can't."""
    settled: asyncio.Future[str] | None = None
    """Done when a successor that has taken the place is ready, or with why it never was."""
    replacing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def of(cls, plan: ProcessPlan, logs: Path | None) -> Slot:
        """An empty place."""
        log = logs / f"{plan.label.replace('/', '.')}.log" if logs else None
        outputs = (output_channels(each.spec, module_class(each.spec)) for each in plan.modules)
        return cls(plan, log, outputs=frozenset[str]().union(*outputs))

    def view(self) -> ProcessView:
        """The process as those who look at the run see it."""
        return ProcessView(
            label=self.plan.label,
            modules=self.plan.names,
            pid=self.process.pid if self.process is not None and self.state in _ALIVE else None,
            state=self.state,  # type: ignore[arg-type]
            restarts=self.restarts,
            why=self.why,
        )

    @property
    def replaced(self) -> bool:
        """Whether its process has taken another one's place and is not ready yet: its failure is not the run's."""
        return self.settled is not None and not self.settled.done()

    def settle(self, why_not: str = "") -> None:
        """A successor is ready, or never was."""
        if self.settled is not None and not self.settled.done():
            self.settled.set_result(why_not)

    def take(self, now: float) -> None:
        """A process begins, or a successor may begin."""
        self.ready.clear()
        self.reported, self.user_error = "", False
        self.state, self.started_at = "starting", now
        self.hear(now)

    def hear(self, now: float) -> None:
        """Take a sign of its life."""
        self.heard = now
        self.waited_s = 0.0 if self.process is None else self.process.waited_s

    def stalled_s(self, now: float) -> float:
        """For how long it has been silent though it could run: what it waited for a processor does not count."""
        waited_s = 0.0 if self.process is None else self.process.waited_s - self.waited_s
        return now - self.heard - max(0.0, waited_s)

    def first_task(self, options: RunOptions, slots: Iterable[Slot]) -> WorkerTask:
        """The task of its first process, which begins together with those of the other ``slots``."""
        robots = set(map(robot_of, self.plan.names))
        beside = (name for slot in slots if slot is not self for name in slot.plan.names)
        return WorkerTask(self.plan, options, self.log, beside=tuple(n for n in beside if robot_of(n) in robots))

    def task(self, options: RunOptions, supplied: frozenset[str], *, waits: bool = False) -> WorkerTask:
        """The task of a later process. ``supplied`` are the channels that something sends to."""
        live = {module: dict(values) for module, values in self.live.items()}
        return WorkerTask(self.plan, options, self.log, live, supplied, waits=waits)


def overdue(slots: Iterable[Slot], began: float) -> str:
    """The modules that are not ready; empty as long as each of their processes may still become it.

    ``began`` is when all had been started: one that has been restarted since has no more time than the others.
    """
    now = clock.monotonic()
    unready = [slot for slot in slots if slot.state != "ready"]
    if all((now - began if slot.restarts else slot.stalled_s(now)) <= START_BOUND_S for slot in unready):
        return ""
    return ", ".join(name for slot in unready for name in slot.plan.names if name not in slot.ready)


def slot_with(slots: Iterable[Slot], module: str) -> Slot:
    """The place of the process that has a module. Raises ``UserError`` that names those that there are."""
    places = {name: slot for slot in slots for name in slot.plan.names}
    if module not in places:
        raise UserError(
            f"no module {module!r} is in this run{suggest(module, places)} (modules: {', '.join(places)})"
        )
    return places[module]
