"""The readers of a simulated run: plain readers that keep what they got, and an agent's event reader."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.event_reader import EventReader
from dimos_streams.agent.missions.message_queue import CallUpdate, MessageQueue
from dimos_streams.client.iterators import closing
from dimos_streams.errors import SkillError, SkillUnavailableError
from dimos_streams.testing import PartGateway
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import JournalEntry
from tests.delivery.schedule import PlannedCall


class KeepingReader:
    """Reads on from its newest record whenever it is started; the record outlives it."""

    def __init__(self, gateway: PartGateway, caller: str | None) -> None:
        self.caller = caller
        self.record: list[JournalEntry] = []
        self._gateway = gateway
        self._task: asyncio.Task[None] | None = None

    @property
    def offset(self) -> int:
        """Where it stands."""
        return self.record[-1].offset if self.record else 0

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._read())

    async def end(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _read(self) -> None:
        async with closing(self._gateway.events(after=self.offset, caller=self.caller)) as events:
            async for entry in events:
                self.record.append(entry)


@dataclass
class AgentLife:
    """The events that one life of the agent got."""

    begun: set[str] = field(default_factory=set)
    """Calls of which it knows that it began them."""
    adopted: dict[str, int] = field(default_factory=dict)
    """Calls that it took over, with the seq that it took them over at."""
    delivered: list[ToolEvent] = field(default_factory=list)
    """Answers and updates, in the order in which they came."""
    offset: int = 0


class SimulatedAgent:
    """An agent's event reader, calls and queue; a crash forgets all but the records that are kept to judge it."""

    name = "agent"

    def __init__(self, gateway: PartGateway) -> None:
        self.lives: list[AgentLife] = []
        self._gateway = gateway
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._numbers = itertools.count(1)
        self._manager: CallManager | None = None

    def start(self) -> None:
        if self._tasks:
            return
        life = AgentLife()
        self.lives.append(life)
        self._spawn(self._live(life))

    async def end(self) -> None:
        self._manager = None
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def make(self, call: PlannedCall) -> None:
        """Make a call and wait for its answer, as the loop does."""
        if self._manager is not None:
            self._spawn(self._make(call, self._manager, self.lives[-1]))

    async def _live(self, life: AgentLife) -> None:
        arrived = asyncio.Event()
        queue = MessageQueue(on_arrival=arrived.set)
        manager = CallManager(self._gateway, self.name, queue.put, key_prefix=f"life {len(self.lives)}")
        self._manager = manager
        while True:
            with contextlib.suppress(SkillUnavailableError):
                life.offset = await self._gateway.offset()
                life.adopted = {call.call_id: call.last_seq for call in await manager.reconciliation.adopt_open()}
                break
            await asyncio.sleep(0.05)
        self._spawn(EventReader(self._gateway, self.name, manager.incoming, offset=life.offset).run())
        while True:
            await arrived.wait()
            arrived.clear()
            life.delivered += [item.event for item in queue.take_nowait() if isinstance(item, CallUpdate)]

    async def _make(self, planned: PlannedCall, manager: CallManager, life: AgentLife) -> None:
        arguments = {"to": planned.to, "pause_ms": planned.pause_ms, "fail": planned.fail}
        with contextlib.suppress(SkillError):
            call = await manager.start(planned.skill, arguments)
            life.begun.add(call.call_id)
            answer = await call.answer(1.0)
            if answer is not None:
                life.delivered.append(answer)
            if planned.cancel_after is not None:
                await asyncio.sleep(planned.cancel_after)
                await manager.endings.cancel([call], "planned")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
