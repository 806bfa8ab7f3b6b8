"""One simulated run, from its first order until everything is at rest."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from dimos_streams import clock
from dimos_streams.bridge.fleet.shipping.older_journal import OlderJournal
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.fleet.protocol import DEFAULT_EXPIRY_S
from dimos_streams.journal.query import Query
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import JournalEntry
from tests.agent.simulation.robot import Body
from tests.fleet.simulation.hub import SimulatedHub, WallClock
from tests.fleet.simulation.operators import Operators, Order
from tests.fleet.simulation.plan import ROBOTS, LineFaults, Plan, Step
from tests.fleet.simulation.reader import Reader
from tests.fleet.simulation.robot import Entry, Run, SimulatedRobot

_INTRODUCED_S = 1.5
_SETTLED_WITHIN_S = 240.0
_CLOCK_SET_S = (0.0, 0.0, 0.0, -3600.0, -10.0, 10.0, 3600.0)
"""The times by which the hub's clock may be set while it is down."""
_OF_ROBOTS = (
    "dimos_streams.bridge.calls.stops.robot_stops",
    "dimos_streams.bridge.fleet.command_notes",
    "dimos_streams.bridge.fleet.earlier_commands",
    "dimos_streams.fleet.last_order",
)
"""The modules that ask robots' wall clock what is old, and which stop is which."""
_ASKED_AGAIN = 4
"""Number of orders that are given once more when all is over."""


@dataclass(kw_only=True)
class Outcome:
    """What is left of a run, as far as it can be judged."""

    plan: Plan
    orders: list[Order]
    bodies: dict[str, list[Body]]
    """What each robot did."""
    entered: dict[str, list[Entry]]
    """The commands that each robot has let in."""
    runs: dict[str, list[Run]]
    """The runs of each robot, each with its calls."""
    journals: dict[str, list[list[ToolEvent]]]
    """The journal of each run."""
    shipped: list[tuple[int, ToolEvent]]
    """The numbers and the events that the hub has."""
    read: list[tuple[int, dict[str, Any]]]
    """Those that a reader of the hub got."""
    shown: dict[str, list[dict[str, Any]]]
    """What the hub shows of each call, by id."""
    unsettled: list[str]
    moments: list[str]
    """Broken promises that were seen while it ran."""
    set_back_s: float
    """See ``SimulatedHub``."""
    copies: int
    """The number of times that the hub's database was put back from a copy."""
    logged: list[logging.LogRecord] = field(default_factory=list)


class World:
    """Runs one plan. ``directory`` is for files."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self._plan, self._directory = plan, directory

    async def run(self) -> Outcome:
        """Run to the end, and return what is left."""
        plan = self._plan
        self.hub = SimulatedHub(self._directory, plan.line, random.Random(f"hub {plan.seed}"))
        self.operators = Operators(self.hub, plan.seed)
        self.reader, self.robots_clock = Reader(self.hub), WallClock()
        self.robots = {name: self._robot(name) for name in ROBOTS}
        with contextlib.ExitStack() as patched:
            patched.enter_context(mock.patch("dimos_streams.hub.storage.engines.sqlite.clock", self.hub.clock))
            for module in _OF_ROBOTS:
                patched.enter_context(mock.patch(f"{module}.clock", self.robots_clock))
            return await self._run()

    async def _run(self) -> Outcome:
        await self.hub.start()
        for robot in self.robots.values():
            await robot.start()
        reading = asyncio.create_task(self.reader.run())
        await asyncio.sleep(_INTRODUCED_S)
        incidents = await self._carry_out_plan()
        await self._make_whole(incidents)
        unsettled = await self._settle()
        outcome = await self._outcome(unsettled)
        await end_tasks_silently(reading)
        for robot in self.robots.values():
            await robot.stop()
        await self.hub.stop(kill=False)
        return outcome

    def _robot(self, name: str) -> SimulatedRobot:
        (self._directory / name).mkdir()
        return SimulatedRobot(name, self._plan, self.hub, self._directory / name)

    async def _carry_out_plan(self) -> list[asyncio.Task[None]]:
        incidents, begun = [], clock.monotonic()
        for step in self._plan.steps:
            await asyncio.sleep(max(0.0, begun + step.at - clock.monotonic()))
            if step.what in ("call", "again", "stop", "release", "release seen", "cancel", "cancel all"):
                self.operators.act(step)
            else:
                incidents.append(asyncio.create_task(self._strike(step)))
        return incidents

    async def _strike(self, step: Step) -> None:
        robot = self.robots[step.robot]
        what, _, part = step.what.partition(" ")
        set_s = _CLOCK_SET_S[int(step.dice * len(_CLOCK_SET_S))]
        if what == "clock":
            (self.hub.clock if part == "hub" else self.robots_clock).offset_s += set_s
        elif part == "hub" or what == "put":
            if self.hub.process is not None:
                await self.hub.stop(kill=what == "crash")
                await asyncio.sleep(step.for_s)
                self.hub.clock.offset_s += set_s
                self.hub.set_back_s += -set_s if -DEFAULT_EXPIRY_S <= set_s < 0 else 0.0
                if what == "put":
                    self.hub.put_back()
                await self.hub.start()
        elif what == "copy":
            self.hub.copy()
        elif what == "token":
            self.hub.admit(step.robot)
        elif what == "replace":
            await robot.replace(step.for_s)
        elif part == "run":
            await robot.begin_anew(step.for_s, crash=what == "crash")
        elif part:
            await robot.strike(part, step.for_s, crash=what == "crash")
        elif what == "cut" and robot.line is not None:
            robot.line.cut(noticed_after_s=step.dice * self._plan.line.unnoticed_s)
        elif what == "away":
            robot.is_away = True
            await asyncio.sleep(step.for_s)
            robot.is_away = False
        elif what == "database":
            self.hub.is_away = True
            await asyncio.sleep(step.for_s)
            self.hub.is_away = False
        elif what == "disk":
            self.hub.fill_disk(is_full=True)
            await asyncio.sleep(step.for_s)
            self.hub.fill_disk(is_full=False)

    async def _make_whole(self, incidents: list[asyncio.Task[None]]) -> None:
        await asyncio.gather(*incidents)
        self.hub.faults, self.hub.is_away = LineFaults(), False
        self.hub.fill_disk(is_full=False)
        for robot in self.robots.values():
            robot.make_whole()

    async def _settle(self) -> list[str]:
        """Wait until nothing is left to happen; then ask again for what was ordered, and wait once more. Where a
        database was put back that is so again meanwhile, and robots that have nothing new ship what it lacks."""
        left = await self._at_rest()
        await self.hub.try_old_tokens()
        if self.hub.copies and not left:
            await self.hub.stop(kill=False)
            self.hub.put_back()
            await self.hub.start()
            left = await self._at_rest()
        for order in self.operators.calls[-_ASKED_AGAIN:]:
            await self.operators.ask(order)
        await asyncio.sleep(1.0)
        return left or await self._at_rest()

    async def _at_rest(self) -> list[str]:
        deadline = clock.monotonic() + _SETTLED_WITHIN_S
        while (left := await self._unsettled()) and clock.monotonic() < deadline:  # noqa: ASYNC110 - many parts
            await asyncio.sleep(0.5)
        return left

    async def _unsettled(self) -> list[str]:
        found = [f"order {task.get_name()}" for task in self.operators.tasks]
        assert self.hub.process is not None
        storage = self.hub.process.parts.storage
        for name, robot in self.robots.items():
            broker, journal = robot.bridge.broker, robot.bridge.journal
            found += [f"{name}: {call.skill} {call.call_id} is open" for call in broker.ledger.calls.open]
            shipped = storage.position(name, journal.identity.journal_id)
            if shipped != journal.last_offset:
                found.append(f"{name}: {shipped} of {journal.last_offset} events are at the hub")
            for run in robot.earlier_runs:
                old = OlderJournal(run.journal)
                await old.open()
                shipped = storage.position(name, old.identity.journal_id)
                if shipped != old.last_offset:
                    found.append(f"{name}: {shipped} of {old.last_offset} events of {run} are at the hub")
        if self.reader.last != (last := storage.bounds().last):
            found.append(f"a reader has {self.reader.last} of {last} events")
        return found

    async def _outcome(self, unsettled: list[str]) -> Outcome:
        assert self.hub.process is not None
        storage = self.hub.process.parts.storage
        for robot in self.robots.values():
            robot.note_calls()
        runs = {name: robot.runs for name, robot in self.robots.items()}
        ids = [view.call_id for of_robot in runs.values() for run in of_robot for view in run.calls]
        shown = {id: [json.loads(row.record) for row in storage.calls.find(id)] for id in ids}
        return Outcome(
            plan=self._plan,
            orders=self.operators.orders,
            bodies={name: robot.bodies for name, robot in self.robots.items()},
            entered={name: robot.entered for name, robot in self.robots.items()},
            runs=runs,
            journals={name: [await _events(run.journal) for run in of_robot] for name, of_robot in runs.items()},
            shipped=[
                (entry.offset, entry.decoded.event) for entry in storage.read(Query(0), 1_000_000, 1 << 30).entries
            ],
            read=list(self.reader.read),
            shown=shown,
            unsettled=unsettled,
            moments=self.hub.moments,
            set_back_s=self.hub.set_back_s,
            copies=self.hub.copies,
        )


async def _events(path: Path) -> list[ToolEvent]:
    journal, found = OlderJournal(path), list[JournalEntry]()
    await journal.open()
    while read := (await journal.read(found[-1].offset if found else 0)).entries:
        found += [entry.decoded for entry in read]
    return [entry.event for entry in found]


class _Listener(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def simulate(plan: Plan, directory: Path) -> Outcome:
    """Run a plan in virtual time."""
    listener = _Listener()
    logging.getLogger().addHandler(listener)
    try:
        outcome = clock.run_virtual(World(plan, directory).run(), limit_s=2000)
    finally:
        logging.getLogger().removeHandler(listener)
    return dataclasses.replace(outcome, logged=listener.records)
