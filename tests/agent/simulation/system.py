"""The parts of a simulated system, each a process of its own on a faulty bus, and what befalls them."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import itertools
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from dimos_streams import clock
from dimos_streams.agent.module import Agent
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import create_bus
from dimos_streams.common.tasks import ends_within
from dimos_streams.messages.codec import channel_name, decode
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.module import Module, RunContext
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.testing import CrashablePart, Faults
from dimos_streams.testing.faults.part import PartDownError
from dimos_streams.tool_stream.gateway import SkillGateway
from tests.agent.simulation.link import Link
from tests.agent.simulation.plan import PARTS, Plan, Step
from tests.agent.simulation.robot import Acting, Body, Eyes, Rover

M = TypeVar("M", bound=Module)

_TOPICS = {
    "gate": {"skill_vel": "/skill_vel", "teleop_vel": "/teleop_vel", "hold": "/hold", "cmd_vel": "/cmd_vel"},
    "rover": {"skill_vel": "/skill_vel"},
    "agent": {"hold": "/hold"},
}


class System:
    """A bridge with its journal, an agent with its record, skills, a velocity gate; ``directory`` is for files."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.bodies: list[Body] = []
        self.velocities: list[tuple[float, float]] = []
        """When the gate sent which velocity to the base."""
        self._directory = directory
        self._files = {"agent": 1, "gate": 1}
        """The number of each part's directory: what a crashed one still writes does not reach the next."""
        self._lives = itertools.count(1)
        self._whole = asyncio.Event()
        self._ending = {name: asyncio.Lock() for name in PARTS}
        """The lock of each part, held while it ends and until it runs again."""
        self._digest = hashlib.sha256()
        self.bus = create_bus("memq://")
        self.parts = {
            name: CrashablePart(
                self.bus, self._build(name, plan), topics=_TOPICS.get(name, {}), faults=plan.faults, seed=number
            )
            for number, name in enumerate(PARTS, plan.seed * 10)
        }
        self.links = {
            name: Link(self.parts["bridge"], random=random.Random(f"{name} {plan.seed}"))
            for name in ("agent", "operator", "reader")
        }

    def _build(self, name: str, plan: Plan) -> Callable[[RunContext], Sequence[Module]]:
        def build(context: RunContext) -> Sequence[Module]:
            if name == "bridge":
                return [Bridge({"journal": self._directory / "journal.sqlite"}, name=name, context=context)]
            if name in ("rover", "eyes"):
                kind = Rover if name == "rover" else Eyes
                return [kind(self.bodies, next(self._lives), name=name, context=context)]
            self.run_dir(name).mkdir(exist_ok=True)
            mine = dataclasses.replace(context, run_dir=self.run_dir(name))
            if name == "gate":
                return [VelocityGate(name=name, context=mine)]
            context.services.offer(SkillGateway, self.links["agent"])  # type: ignore[type-abstract]
            return [Agent(plan.config, name=name, context=mine)]

        return build

    def run_dir(self, name: str) -> Path:
        """The directory of a part's present life."""
        return self._directory / f"{name}-{self._files[name]}"

    async def start(self) -> None:
        """Start all parts."""
        await self.bus.open()
        self.bus.subscribe_all(self._on_message)
        self.bus.subscribe(channel_name("/cmd_vel", Twist), self._on_velocity)
        for part in self.parts.values():
            await part.start()

    async def stop(self) -> None:
        """Stop all parts in good order."""
        for part in reversed(self.parts.values()):
            await part.stop()
        await self.bus.close()

    @property
    def digest(self) -> str:
        """A digest of all that was on the bus, and when."""
        return self._digest.hexdigest()

    @property
    def bridge(self) -> Bridge | None:
        """The bridge, None while it is down."""
        found = self._module("bridge", Bridge)
        return found if found is not None and hasattr(found, "broker") else None

    @property
    def agent(self) -> Agent | None:
        """The agent, None while it is down."""
        found = self._module("agent", Agent)
        return found if found is not None and hasattr(found, "core") else None

    def runs(self, body: Body) -> bool:
        """Return whether a skill runs in a process that lives."""
        lives = {module.life for name in ("rover", "eyes") if (module := self._module(name, Acting)) is not None}
        return body.ended is None and body.life in lives

    def _module(self, name: str, kind: type[M]) -> M | None:
        try:
            found = self.parts[name].module(name)
        except (PartDownError, KeyError):
            return None
        return found if isinstance(found, kind) else None

    async def strike(self, step: Step) -> None:
        """Have an incident befall a part, and wait until it is over."""
        part = self.parts[step.part]
        if step.what in ("crash", "restart"):
            async with self._ending[step.part]:
                await (self._crash(step.part) if step.what == "crash" else part.stop())
                await self._last(step)
                await part.start()
        elif step.what == "partition" and part.running:
            bus, bus.partitioned = part.bus, True
            await self._last(step)
            bus.partitioned = False
        elif step.what == "cut":
            for link in self.links.values():
                link.cut()
        elif step.what in ("lose answers", "deaf gateway"):
            await self._disturb(self.links["agent" if step.dice < 0.7 else "operator"], step)

    async def _crash(self, name: str) -> None:
        if name in self._files:
            before = self.run_dir(name)
            self._files[name] += 1
            shutil.copytree(before, self.run_dir(name))
        self.parts[name].crash()

    async def _disturb(self, link: Link, step: Step) -> None:
        link.is_cut, link.loses_answers = step.what == "deaf gateway", step.what == "lose answers"
        link.cut()
        await self._last(step)
        link.is_cut = link.loses_answers = False

    async def _last(self, step: Step) -> None:
        await ends_within(step.for_s, self._whole.wait())

    def make_whole(self) -> None:
        """End all incidents; nothing is lost from now on."""
        self._whole.set()
        for part in self.parts.values():
            part.faults = Faults()
            if part.running:
                part.bus.faults = Faults()

    def _on_message(self, channel: str, data: bytes) -> None:
        for part in (str(clock.utime()).encode(), channel.encode(), data):
            self._digest.update(len(part).to_bytes(4, "big") + part)

    def _on_velocity(self, channel: str, data: bytes) -> None:
        self.velocities.append((clock.monotonic(), decode(Twist, data, channel=channel).linear.x))
