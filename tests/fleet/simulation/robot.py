"""A robot of the fleet: a bridge with its link to the hub, skills and a velocity gate, each a process of its own."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest import mock

from starlette.types import ASGIApp

from dimos_streams import clock
from dimos_streams.bridge.app import create_app
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.fleet.door import Door, DoorReply, begins_call
from dimos_streams.bridge.fleet.link import HubLink
from dimos_streams.bridge.fleet.settings import HubLinkSettings
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import create_bus
from dimos_streams.common.process.run_owner import own
from dimos_streams.fleet.commands import Command
from dimos_streams.fleet.last_order import LastOrder
from dimos_streams.module import Module, RunContext
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.testing import CrashablePart, Faults
from dimos_streams.tool_stream.gateway import CallView
from tests.agent.simulation.robot import Body, Rover
from tests.fleet.simulation.hub import SimulatedHub
from tests.fleet.simulation.line import Line
from tests.fleet.simulation.plan import Plan

_TOPICS = {
    "gate": {"skill_vel": "/skill_vel", "teleop_vel": "/teleop_vel", "hold": "/hold", "cmd_vel": "/cmd_vel"},
    "rover": {"skill_vel": "/skill_vel"},
    "bridge": {},
}


@dataclass(frozen=True)
class Entry:
    """A command of the hub that a bridge has let in."""

    at: float
    """The time, on the loop's clock."""
    run: int
    path: str
    key: str
    """Its key; the idempotency key of the call that it begins."""
    begins_call: bool


class _WatchedDoor(Door):
    """A bridge's door for commands of the hub, which keeps those that enter, but for questions."""

    def __init__(self, robot: SimulatedRobot, app: ASGIApp, broker: Broker, last_order: LastOrder) -> None:
        super().__init__(app, broker, last_order)
        self._robot = robot

    async def enter(self, command: Command, begin_by: float, key: str) -> DoorReply:
        """See ``Door``."""
        if command.method != "GET":
            begins = begins_call(command)
            name = str((command.body or {}).get("idempotency_key")) if begins else command.key
            run = len(self._robot.runs)
            self._robot.entered.append(Entry(clock.monotonic(), run, command.path, name, begins))
        return await super().enter(command, begin_by, key)


@dataclass
class Run:
    """A run of a robot, on one of the machines that have had its name."""

    machine: int
    directory: Path
    owner: int
    """The descriptor that makes the directory a run that lives."""
    began: float
    ended: float = float("inf")
    calls: list[CallView] = field(default_factory=list)
    """Its calls, as they were when it ended."""

    @property
    def journal(self) -> Path:
        return self.directory / "journal.sqlite"


class SimulatedRobot:
    """A robot; ``directory`` is for its files."""

    def __init__(self, name: str, plan: Plan, hub: SimulatedHub, directory: Path) -> None:
        self.name = name
        self.bodies: list[Body] = []
        """What its skills did."""
        self.entered: list[Entry] = []
        """The commands that its bridges have let in."""
        self.runs: list[Run] = []
        """All its runs; the last one is that of now."""
        self.is_away = False
        """True if it can't reach the hub."""
        self.line: Line | None = None
        self._link: HubLink | None = None
        self._hub, self._directory = hub, directory
        self._random = random.Random(f"{name} {plan.seed}")
        self._lives = itertools.count(1)
        self._ending = asyncio.Lock()
        self._bus = create_bus("memq://")
        context = RunContext(seed=self._random.randrange(1 << 30))
        self.parts = {
            part: CrashablePart(
                self._bus, self._build(part), topics=topics, faults=plan.faults, seed=number, context=context
            )
            for number, (part, topics) in enumerate(_TOPICS.items(), context.seed)
        }

    def _build(self, part: str) -> Callable[[RunContext], Sequence[Module]]:
        def build(context: RunContext) -> Sequence[Module]:
            run = self.runs[-1]
            if part == "bridge":
                return [Bridge({"journal": run.journal}, name=part, context=context)]
            if part == "rover":
                return [Rover(self.bodies, next(self._lives), name=part, context=context)]
            return [VelocityGate(name=part, context=dataclasses.replace(context, run_dir=run.directory))]

        return build

    @property
    def bridge(self) -> Bridge:
        """Its bridge. Raises ``PartDownError``."""
        found = self.parts["bridge"].module("bridge")
        assert isinstance(found, Bridge)
        return found

    async def start(self) -> None:
        """Start all of it."""
        await self._bus.open()
        self._begin_run(machine=1)
        for part in self.parts:
            await self._start(part)

    async def stop(self) -> None:
        """Stop all of it in good order."""
        for part in reversed(self.parts):
            await self._end(part, crash=False)
        await self._bus.close()
        os.close(self.runs[-1].owner)

    async def begin_anew(self, for_s: float, *, crash: bool) -> None:
        """End its run, and begin another one after a while."""
        async with self._ending:
            await self._end_run(crash=crash)
            await asyncio.sleep(for_s)
            await self._start_run(self.runs[-1].machine)

    async def replace(self, for_s: float) -> None:
        """Have another machine in its place, after a while: it gets the name, and a token of its own."""
        async with self._ending:
            await self._end_run(crash=True)
            self._hub.remove(self.name)
            await asyncio.sleep(for_s)
            self._hub.admit(self.name)
            await self._start_run(self.runs[-1].machine + 1)

    @property
    def earlier_runs(self) -> list[Run]:
        """The runs before that of now, of the machine that has its name."""
        return [run for run in self.runs[:-1] if run.machine == self.runs[-1].machine]

    def note_calls(self) -> None:
        """Note the calls of its run as they are now."""
        self.runs[-1].calls = [call.view() for call in self.bridge.broker.ledger.calls if call.journalled]

    def _begin_run(self, machine: int) -> None:
        directory = self._directory / f"machine-{machine}" / f"run-{len(self.runs) + 1}"
        directory.mkdir(parents=True)
        self.runs.append(Run(machine, directory, own(directory), clock.monotonic()))

    async def _start_run(self, machine: int) -> None:
        self._begin_run(machine)
        for part in self.parts:
            await self._start(part)

    async def _end_run(self, *, crash: bool) -> None:
        self.note_calls()
        for part in reversed(self.parts):
            await self._end(part, crash=crash)
        self.runs[-1].ended = clock.monotonic()
        os.close(self.runs[-1].owner)

    async def strike(self, part: str, for_s: float, *, crash: bool) -> None:
        """End a part, and start it again after a while."""
        async with self._ending:
            await self._end(part, crash=crash)
            await asyncio.sleep(for_s)
            await self._start(part)

    def make_whole(self) -> None:
        """Nothing gets lost on its bus from now on."""
        self.is_away = False
        for part in self.parts.values():
            part.faults = Faults()
            if part.running:
                part.bus.faults = Faults()

    async def _start(self, part: str) -> None:
        await self.parts[part].start()
        if part != "bridge":
            return
        bridge, rng = self.bridge, random.Random(self._random.random())
        line = self.line = Line(self.name, self._hub, rng, is_away=lambda: self.is_away)
        settings = HubLinkSettings(url="http://hub", robot=self.name)
        app = create_app(bridge.broker, bridge.broadcast)
        door = partial(_WatchedDoor, self)
        with (
            mock.patch("dimos_streams.bridge.fleet.link.HubConnection", return_value=line),
            mock.patch("dimos_streams.bridge.fleet.link.Door", door),
        ):
            self._link = HubLink(settings, app, bridge.broker, bridge.broadcast, rng=rng, notes=list)
        self._link.start()

    async def _end(self, part: str, *, crash: bool) -> None:
        link = self._link
        if part == "bridge" and link is not None and self.line is not None:
            self._link = None
            if not crash:
                await link.finish()
            self.line.is_dead = True
            if crash:
                self.parts[part].crash()
            await link.stop()
        if crash:
            self.parts[part].crash()
        else:
            await self.parts[part].stop()
