"""One simulated run, from its first order until everything is at rest."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import logging
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from dimos_streams import clock
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.models import create_model
from dimos_streams.agent.models.protocol import Model
from dimos_streams.client.iterators import closing
from dimos_streams.common.waiting import who_waits
from dimos_streams.journal.query import Query
from dimos_streams.operator.messages.agent import AgentEvent, AgentSnapshot
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import CallView, JournalEntry
from tests.agent.simulation.brain import Brain, Mind
from tests.agent.simulation.operators import Operators, Order
from tests.agent.simulation.plan import Plan
from tests.agent.simulation.robot import Body
from tests.agent.simulation.system import System

_INTRODUCED_S = 3.0
SETTLED_WITHIN_S = 400.0


@dataclass(kw_only=True)
class Outcome:
    """What is left of a run, as far as it can be judged."""

    plan: Plan
    digest: str
    orders: list[Order]
    bodies: list[Body]
    velocities: list[tuple[float, float]]
    read: list[JournalEntry]
    """What a reader got that read from the first moment on."""
    journal: list[JournalEntry]
    calls: list[CallView]
    snapshot: AgentSnapshot
    record: list[AgentEvent]
    """The agent's record, each event once, in order."""
    unsettled: list[str]
    """What was not at rest ``SETTLED_WITHIN_S`` after the last fault."""
    moments: list[str]
    """What was wrong along the way."""
    logged: list[logging.LogRecord] = field(default_factory=list)

    @functools.cached_property
    def by_call(self) -> dict[str, list[ToolEvent]]:
        """The events of each call, in order."""
        found = defaultdict(list)
        for entry in self.journal:
            found[entry.event.call_id].append(entry.event)
        return dict(found)


class World:
    """Runs one plan. ``directory`` is for files."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self._plan = plan
        self._calm = False
        self.system = System(plan, directory)
        self.mind = Mind(plan.seed, self._is_calm, self._open_calls)
        self.operators = Operators(self.system, self.mind)
        self._read: list[JournalEntry] = []
        self._moments: list[str] = []

    def _is_calm(self) -> bool:
        return self._calm

    def _open_calls(self) -> list[str]:
        agent = self.system.agent
        return [] if agent is None else [call.call_id for call in agent.core.calls.known.open]

    async def run(self) -> Outcome:
        """Run to the end, and return what is left."""
        await self.system.start()
        beside = [asyncio.create_task(work) for work in (self._keep_reading(), self._watch_leases())]
        await asyncio.sleep(_INTRODUCED_S)
        incidents = await self._carry_out_plan()
        self.system.make_whole()
        await asyncio.gather(*incidents)
        self._calm = True
        await asyncio.sleep(_INTRODUCED_S)
        await self._settle()
        outcome = self._outcome()
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await self.operators.tasks.end()
        await self.system.stop()
        await asyncio.sleep(5.0)
        outcome.moments += [
            f"left: {line}" for line in who_waits(asyncio.get_running_loop()) if "World.run" not in line
        ]
        return outcome

    async def _carry_out_plan(self) -> list[asyncio.Task[None]]:
        incidents = []
        for step in self._plan.steps:
            await asyncio.sleep(max(0.0, _INTRODUCED_S + step.at - clock.monotonic()))
            if step.part:
                incidents.append(asyncio.create_task(self.system.strike(step)))
            else:
                self.operators.act(step)
        await asyncio.sleep(max(0.0, _INTRODUCED_S + self._plan.until_s - clock.monotonic()))
        return incidents

    async def _settle(self) -> None:
        """Let go of what operators hold, and wait until nothing is left to happen."""
        await self.operators.ask("release robot")
        deadline = clock.monotonic() + SETTLED_WITHIN_S
        while clock.monotonic() < deadline:
            await self._let_go()
            await asyncio.sleep(0.5)
            if not self._unsettled():
                await asyncio.sleep(5.0)  # whatever comes late, or once more, has a moment to come
                if not self._unsettled():
                    return

    async def _let_go(self) -> None:
        agent = self.system.agent
        assert agent is not None
        if agent.core.control.mode.value != "running":
            await self.operators.command("resume")
        for view in agent.core.gate_state.approvals.pending():
            decision = {"approval": view.id, "decision": "reject", "revision": view.revision}
            await self.operators.command("decide", str(view.arguments.get("tag")), **decision)

    def _unsettled(self) -> list[str]:
        agent, bridge = self.system.agent, self.system.bridge
        assert agent is not None
        assert bridge is not None
        core, broker = agent.core, bridge.broker
        found: dict[str, Iterable[Any]] = {
            "missions": core.loop.missions,
            "state": [] if core.loop.state is LoopState.IDLE else [core.loop.state.value],
            "mode": [] if core.control.mode.value == "running" else [core.control.mode.value],
            "the agent's calls": self._open_calls(),
            "queue": range(len(core.queue)),
            "approvals": [view.id for view in core.gate_state.approvals.pending()],
            "open calls": [f"{call.skill} {call.call_id}" for call in broker.ledger.calls.open if call.journalled],
            "requests": broker._requests._pending,
            "calls that wait": broker.ledger.waiting,
            "leases": broker.ledger.leases.holders(),
            "skills": [body for body in self.system.bodies if self.system.runs(body)],
            "unacknowledged": self._unacknowledged(),
            "orders": [task.get_name() for task in self.operators.tasks],
            "models": range(self.mind.streams),
        }
        return [f"{name}: {what}" for name, each in found.items() if (what := list(each))]

    def _unacknowledged(self) -> list[tuple[str, int]]:
        lives = ((name, part._life) for name, part in self.system.parts.items())
        hosts = [(name, life.host._skills.publisher) for name, life in lives if life is not None]
        return [call for name, publisher in hosts for call in publisher.heartbeat_calls(name)]

    def _outcome(self) -> Outcome:
        agent, bridge = self.system.agent, self.system.bridge
        assert agent is not None
        assert bridge is not None
        return Outcome(
            plan=self._plan,
            digest=self.system.digest,
            orders=self.operators.orders,
            bodies=self.system.bodies,
            velocities=self.system.velocities,
            read=list(self._read),
            journal=[entry.decoded for entry in bridge.journal.read(Query(0), 1_000_000, 1 << 30).entries],
            calls=[call.view() for call in bridge.broker.ledger.calls if call.journalled],
            snapshot=agent.core.operators.snapshots.take(watched=False),
            record=_read_record(self.system.run_dir("agent")),
            unsettled=self._unsettled(),
            moments=self._moments,
        )

    async def _keep_reading(self) -> None:
        async with closing(self.system.links["reader"].events(after=0)) as events:
            async for entry in events:
                self._read.append(entry)

    async def _watch_leases(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            if (bridge := self.system.bridge) is None:
                continue
            ledger = bridge.broker.ledger
            known = {call.call_id for call in ledger.calls.open} | set(ledger.waiting)
            for resource, holder in ledger.leases.holders().items():
                if holder not in known:
                    self._moments.append(
                        f"{clock.monotonic():.3f}: {resource} is held by {holder}, which is not open"
                    )


class _Listener(logging.Handler):
    """Keeps what is logged as a warning or worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def simulate(plan: Plan, directory: Path) -> Outcome:
    """Run a plan in virtual time."""
    world, listener = World(plan, directory), _Listener()

    def create(spec: str, **options: Any) -> Model:
        return Brain(world.mind) if spec.startswith("openai:") else create_model(spec, **options)

    logging.getLogger().addHandler(listener)
    try:
        with (
            warnings.catch_warnings(record=True, action="always") as caught,
            mock.patch("dimos_streams.agent.model_factory.create_model", create),
        ):
            outcome = clock.run_virtual(world.run(), limit_s=2000)
            gc.collect()  # tasks that nobody has waited for say so then
    finally:
        logging.getLogger().removeHandler(listener)
    outcome.moments += [f"warning: {each.message}" for each in caught]
    outcome.logged = listener.records
    return outcome


def _read_record(run_dir: Path) -> list[AgentEvent]:
    lines = [line for path in (run_dir / "missions").glob("*.jsonl") for line in path.read_text().splitlines()]
    events = [AgentEvent.model_validate(json.loads(line)["event"]) for line in lines]
    return list({event.number: event for event in sorted(events, key=lambda event: event.number)}.values())
