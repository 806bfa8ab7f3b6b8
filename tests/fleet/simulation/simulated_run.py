"""One simulated run, from its first order until everything is at rest."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from dimos_streams import clock
from dimos_streams.journal.query import Query
from dimos_streams.tool_stream.gateway import CallView, JournalEntry
from tests.agent.simulation.robot import Body
from tests.fleet.simulation.hub import SimulatedHub
from tests.fleet.simulation.operators import Operators, Order
from tests.fleet.simulation.plan import ROBOTS, LineFaults, Plan, Step
from tests.fleet.simulation.robot import SimulatedRobot

_INTRODUCED_S = 1.5
_SETTLED_WITHIN_S = 120.0
_CLOCK_SET_S = (0.0, 0.0, 0.0, -3600.0, -10.0, 10.0, 3600.0)
"""The times by which the hub's clock may be set while it is down."""
_ASKED_AGAIN = 4
"""Number of orders that are given once more when all is over."""


@dataclass(kw_only=True)
class Outcome:
    """What is left of a run, as far as it can be judged."""

    plan: Plan
    orders: list[Order]
    bodies: dict[str, list[Body]]
    """What each robot did."""
    entered: dict[str, list[str]]
    """The commands of each robot that were carried out and are no calls."""
    journals: dict[str, list[JournalEntry]]
    calls: dict[str, list[CallView]]
    shipped: dict[str, list[JournalEntry]]
    """The events of each robot that the hub has, in its order."""
    shown: dict[str, list[dict[str, Any]]]
    """What the hub shows of each call, by id."""
    unsettled: list[str]
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
        self.robots = {name: self._robot(name) for name in ROBOTS}
        with mock.patch("dimos_streams.hub.storage.sqlite.clock", self.hub.clock):
            return await self._run()

    async def _run(self) -> Outcome:
        await self.hub.start()
        for robot in self.robots.values():
            await robot.start()
        await asyncio.sleep(_INTRODUCED_S)
        incidents = await self._carry_out_plan()
        await self._make_whole(incidents)
        unsettled = await self._settle()
        outcome = self._outcome(unsettled)
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
            if step.what in ("call", "again", "stop", "release", "cancel", "cancel all"):
                self.operators.act(step)
            else:
                incidents.append(asyncio.create_task(self._strike(step)))
        return incidents

    async def _strike(self, step: Step) -> None:
        robot = self.robots[step.robot]
        what, _, part = step.what.partition(" ")
        if part == "hub":
            if self.hub.process is not None:
                await self.hub.stop(kill=what == "crash")
                await asyncio.sleep(step.for_s)
                self.hub.clock.offset_s += _CLOCK_SET_S[int(step.dice * len(_CLOCK_SET_S))]
                await self.hub.start()
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

    async def _make_whole(self, incidents: list[asyncio.Task[None]]) -> None:
        await asyncio.gather(*incidents)
        self.hub.faults, self.hub.is_away = LineFaults(), False
        for robot in self.robots.values():
            robot.make_whole()

    async def _settle(self) -> list[str]:
        """Wait until nothing is left to happen; then ask again for what was ordered, and wait once more."""
        left = await self._at_rest()
        for order in self.operators.calls[-_ASKED_AGAIN:]:
            await self.operators.ask(order)
        await asyncio.sleep(1.0)
        return left or await self._at_rest()

    async def _at_rest(self) -> list[str]:
        deadline = clock.monotonic() + _SETTLED_WITHIN_S
        while (left := self._unsettled()) and clock.monotonic() < deadline:  # noqa: ASYNC110 - many parts
            await asyncio.sleep(0.5)
        return left

    def _unsettled(self) -> list[str]:
        found = [f"order {task.get_name()}" for task in self.operators.tasks]
        assert self.hub.process is not None
        storage = self.hub.process.parts.storage
        for name, robot in self.robots.items():
            broker, journal = robot.bridge.broker, robot.bridge.journal
            found += [f"{name}: {call.skill} {call.call_id} is open" for call in broker.ledger.calls.open]
            shipped = storage.position(name, journal.identity.journal_id)
            if shipped != journal.last_offset:
                found.append(f"{name}: {shipped} of {journal.last_offset} events are at the hub")
        return found

    def _outcome(self, unsettled: list[str]) -> Outcome:
        assert self.hub.process is not None
        storage = self.hub.process.parts.storage
        shipped: dict[str, list[JournalEntry]] = {name: [] for name in self.robots}
        for entry in storage.read(Query(0), 1_000_000, 1 << 30).entries:
            shipped[entry.decoded.event.robot or "?"].append(entry.decoded)
        calls = {
            name: [call.view() for call in robot.bridge.broker.ledger.calls if call.journalled]
            for name, robot in self.robots.items()
        }
        ids = [view.call_id for views in calls.values() for view in views]
        shown = {id: [json.loads(row.record) for row in storage.calls.find(id)] for id in ids}
        return Outcome(
            plan=self._plan,
            orders=self.operators.orders,
            bodies={name: robot.bodies for name, robot in self.robots.items()},
            entered={name: robot.entered for name, robot in self.robots.items()},
            journals={
                name: [each.decoded for each in robot.bridge.journal.read(Query(0), 1_000_000, 1 << 30).entries]
                for name, robot in self.robots.items()
            },
            calls=calls,
            shipped=shipped,
            shown=shown,
            unsettled=unsettled,
        )


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
