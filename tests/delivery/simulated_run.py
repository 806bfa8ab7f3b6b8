"""One simulated run: real parts on a faulty bus, in virtual time."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import hashlib
import itertools
import random
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import create_bus
from dimos_streams.errors import SkillError, SkillUnavailableError
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.journal.query import Query
from dimos_streams.testing import CrashablePart, Faults, PartGateway
from dimos_streams.tool_stream.gateway import JournalEntry
from tests.delivery.readers import KeepingReader, SimulatedAgent
from tests.delivery.schedule import FAULTS_END_S, PARTS, Incident, PlannedCall, Schedule, schedule
from tests.delivery.skills import Body, Walker, Watcher

HELD_S = 1.0
"""After the faults have ended, until what still runs is cancelled."""
SETTLED_WITHIN_S = 6.0
"""From then on, until every call has closed, every skill has ended and every reader has read it all."""


@dataclass(repr=False)  # asyncio shows what a run gave, in an error that it makes and drops
class Outcome:
    """The end of a run, as far as it can be judged."""

    schedule: Schedule
    journal: list[JournalEntry]
    calls: list[CallState]
    rows: dict[str, bool]
    """Calls in the journal, and whether each is closed."""
    holders: dict[str, str]
    unacknowledged: list[tuple[str, int]]
    readers: list[KeepingReader]
    agent: SimulatedAgent
    bodies: list[Body]
    accepted: dict[str, str]
    """Ids that the script got, by its keys."""
    moments: list[str]
    """Broken promises that were seen while it ran."""
    journal_lost: bool = False
    trace: list[str] = field(default_factory=list)
    settled: bool = True

    def digest(self) -> str:
        """A digest of everything that happened."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()


class Simulation:
    """Runs one schedule. ``directory`` holds the journal."""

    def __init__(self, plan: Schedule, directory: Path) -> None:
        self._plan = plan
        self._inner = create_bus("memq://")
        self._path = directory / f"journal-{plan.seed}.sqlite"
        self._bodies: list[Body] = []
        self._accepted: dict[str, str] = {}
        self._moments: list[str] = []
        self._trace: list[str] = []
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def run(self) -> Outcome:
        """The whole run."""
        await self._inner.open()
        self._make_parts()
        for part in self.parts.values():
            await part.start()
        for reader in self.readers:
            reader.start()
        self.agent.start()
        for call in self._plan.calls:
            self._spawn(self._make_call(call))
        for incident in self._plan.incidents:
            self._spawn(self._break(incident))
        self._spawn(self._watch_leases())
        await asyncio.sleep(FAULTS_END_S)
        for part in self.parts.values():
            if part.running:
                part.bus.faults = Faults()
            part.faults = Faults()
        await asyncio.sleep(HELD_S)
        settled = await self._settle()
        outcome = self._outcome(settled)
        await self._end()
        return outcome

    def _make_parts(self) -> None:
        seed, faults = self._plan.seed, self._plan.faults
        bodies, lives = self._bodies, itertools.count()
        builds = {
            "bridge": lambda context: [Bridge({"journal": self._path}, name="bridge", context=context)],
            "walker": lambda context: [Walker(bodies, next(lives), name="walker", context=context)],
            "watcher": lambda context: [Watcher(bodies, next(lives), name="watcher", context=context)],
        }
        self.parts = {
            name: CrashablePart(self._inner, build, faults=faults, seed=seed * 10 + index)  # type: ignore[arg-type]
            for index, (name, build) in enumerate(builds.items())
        }
        bridge = self.parts["bridge"]
        gateways = [PartGateway(bridge, random=random.Random(f"gateway {seed} {index}")) for index in range(3)]
        self.gateways = gateways
        self.readers = [KeepingReader(gateways[0], None), KeepingReader(gateways[1], "script")]
        self.agent = SimulatedAgent(gateways[2])

    async def _make_call(self, call: PlannedCall) -> None:
        await asyncio.sleep(call.at)
        self._note(f"{call.caller} calls {call.skill}")
        if call.caller == "agent":
            self.agent.make(call)
            return
        key = f"{call.at}"
        call_id = await self._insist(call, key)
        if call_id is None:
            return
        self._accepted[key] = call_id
        await asyncio.sleep(call.repeat_after)
        again = await self._insist(call, key)
        if again != call_id and not self._lost_journal():
            self._moments.append(f"key {key} gave call {call_id}, later {again}")
        if call.cancel_after is not None:
            await asyncio.sleep(call.cancel_after)
            self._note(f"script cancels {call_id}")
            with contextlib.suppress(SkillError):
                await self.gateways[1].cancel(call_id, "planned")

    async def _insist(self, call: PlannedCall, key: str) -> str | None:
        """Call until there is an answer, as a client with an idempotency key may."""
        while True:
            try:
                return await self.gateways[1].call(
                    call.skill,
                    {"to": call.to, "pause_ms": call.pause_ms, "fail": call.fail},
                    caller="script",
                    on_duplicate=call.on_duplicate,
                    idempotency_key=key,
                    lease_wait_s=call.lease_wait_s,
                )
            except SkillUnavailableError:
                await asyncio.sleep(0.1)
            except SkillError as error:
                self._note(f"refused: {error}")
                return None

    async def _break(self, incident: Incident) -> None:
        await asyncio.sleep(incident.at)
        self._note(f"{incident.kind} {incident.part} for {incident.for_s:.3f} lost={incident.journal_lost}")
        part = self.parts[incident.part]
        match incident.kind:
            case "crash":
                await self._crash(part, incident)
            case "partition" if part.running:
                bus = part.bus
                bus.partitioned = True
                await asyncio.sleep(incident.for_s)
                bus.partitioned = False
            case "cut":
                for gateway in self.gateways:
                    gateway.cut()
            case "crash agent":
                await self.agent.end()
                await asyncio.sleep(incident.for_s)
                await self.agent.end()
                self.agent.start()
            case "crash reader":
                reader = self.readers[PARTS.index(incident.part) % len(self.readers)]
                await reader.end()
                await asyncio.sleep(incident.for_s)
                await reader.end()
                reader.start()
        self._note(f"{incident.kind} {incident.part} is over")

    async def _crash(self, part: CrashablePart, incident: Incident) -> None:
        if not part.running:
            return
        part.crash()
        if incident.journal_lost:
            self._path.write_bytes(b"no journal" * 1000)
        await asyncio.sleep(incident.for_s)
        await part.start()

    async def _watch_leases(self) -> None:
        """Leases are held by open calls, and each open call holds its own."""
        lacking: collections.Counter[str] = collections.Counter()
        while True:
            await asyncio.sleep(0.05)
            if not self.parts["bridge"].running:
                continue
            ledger = self._bridge().broker.ledger
            holders, calls = ledger.leases.holders(), {call.call_id: call for call in ledger.calls.open}
            for resource, holder in holders.items():
                if holder not in calls:
                    moment = f"{clock.monotonic():.3f}"
                    self._moments.append(f"{moment}: {resource} is held by {holder}, which is not open")
            for call in calls.values():
                if all(holders.get(resource) == call.call_id for resource in call.resources):
                    continue
                lacking[call.call_id] += 1
                # A journal that is lost takes the leases with it; a call that ran on is found out and cancelled.
                found_out = call.cancel is not None or lacking[call.call_id] <= 4
                if not (self._plan.journal_lost and found_out):
                    text = f"{call.call_id} is open, needs {call.resources} and does not hold that"
                    self._moments.append(f"{clock.monotonic():.3f}: {text}")

    async def _settle(self) -> bool:
        """End what still runs, and wait until nothing is left to happen; False if that takes too long."""
        deadline = clock.monotonic() + SETTLED_WITHIN_S
        while clock.monotonic() < deadline:
            for view in await self.gateways[1].calls(open_only=True):
                await self.gateways[1].cancel(view.call_id, "all is to end")
            await asyncio.sleep(0.1)
            if self._is_settled():
                # Whatever is delivered once more, or too much, has a moment to come.
                await asyncio.sleep(0.6)
                return True
        return False

    def _is_settled(self) -> bool:
        bridge = self._bridge()
        ended = all(body.ended is not None for body in self._bodies)
        others = [task for task in self._tasks if task.get_name() != "watch"]
        if others or not ended or bridge.broker.ledger.calls.open or self._unacknowledged():
            return False
        if bridge.broker._requests._pending:  # a skill has asked for another one, which may begin yet
            return False
        newest: dict[str | None, int] = {}  # offsets that readers should have reached
        for entry in self._entries():
            newest[None] = newest[entry.caller] = entry.offset
        return all(reader.offset >= newest.get(reader.caller, 0) for reader in self.readers)

    def _unacknowledged(self) -> list[tuple[str, int]]:
        found = []
        for name in ("walker", "watcher"):
            life = self.parts[name]._life
            if life is not None:
                found += life.host._skills.publisher.heartbeat_calls(name)
        return found

    def _bridge(self) -> Bridge:
        bridge = self.parts["bridge"].module("bridge")
        assert isinstance(bridge, Bridge)
        return bridge

    def _entries(self) -> Sequence[EncodedEntry]:
        return self._bridge().journal.read(Query(0), 100_000, 1 << 30).entries

    def _journal(self) -> list[JournalEntry]:
        return [entry.decoded for entry in self._entries()]

    def _outcome(self, settled: bool) -> Outcome:
        ledger = self._bridge().broker.ledger
        outcome = Outcome(
            schedule=self._plan,
            journal=self._journal(),
            calls=list(ledger.calls),
            rows={row.call_id: row.closed for row in self._bridge().journal.calls(1000)},
            holders=ledger.leases.holders(),
            unacknowledged=self._unacknowledged(),
            readers=self.readers,
            agent=self.agent,
            bodies=self._bodies,
            accepted=self._accepted,
            moments=self._moments,
            journal_lost=self._lost_journal(),
            trace=self._trace,
            settled=settled,
        )
        for journalled in outcome.journal:
            event = journalled.event
            self._trace.append(
                f"{journalled.offset} {event.utime} {event.call_id} {event.seq} {event.type} {event.skill}"
                f" {event.caller} {event.text!r} {event.data}"
            )
        for reader in self.readers:
            self._trace.append(f"{reader.caller} read {[p.offset for p in reader.record]}")
        for life in self.agent.lives:
            self._trace.append(f"agent got {[(e.call_id, e.seq, e.type) for e in life.delivered]}")
        return outcome

    async def _end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await self.agent.end()
        for reader in self.readers:
            await reader.end()
        for part in self.parts.values():
            await part.stop()
        await self._inner.close()
        for path in self._files():
            path.unlink()

    def _lost_journal(self) -> bool:
        return any(path.name.startswith(f"{self._path.name}.damaged-") for path in self._files())

    def _files(self) -> Iterator[Path]:
        return (path for path in self._path.parent.iterdir() if path.name.startswith(self._path.name))

    def _note(self, text: str) -> None:
        self._trace.append(f"{clock.monotonic():.6f} {text}")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        name = "watch" if getattr(work, "__name__", "") == "_watch_leases" else "plan"
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))


def simulate(seed: int, directory: Path) -> Outcome:
    """One run."""
    return clock.run_virtual(Simulation(schedule(seed), directory).run())
