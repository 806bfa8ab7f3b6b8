"""A bridge that is all in memory, and the line of an agent to it."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dimos_streams import clock
from dimos_streams.errors import CallRejectedError, SkillError
from dimos_streams.skill import OnDuplicate, OnLoss
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import CallView, JournalEntry, OfferedSkill
from dimos_streams.tool_stream.protocol.close_data import NOT_RUN, TO_END

ANYTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}


def offered(name: str, **fields: Any) -> OfferedSkill:
    return OfferedSkill(name=name, description=name, parameters=ANYTHING, module="skills", available=True, **fields)


@dataclass(eq=False)
class FakeCall:
    """A call as the bridge in memory knows it."""

    id: str
    skill: str
    arguments: Mapping[str, Any]
    caller: str
    at: float
    bridge: FakeBridge
    seq: int = 0
    outcome: Outcome | None = None
    task: asyncio.Task[None] | None = None
    reason: str = ""
    ended_at: float = math.inf

    def send(self, type: Any, text: str, **data: Any) -> None:
        self.seq += 1
        event = ToolEvent(
            utime=clock.utime(),
            call_id=self.id,
            seq=self.seq,
            type=type,
            module="skills",
            skill=self.skill,
            caller=self.caller,
            text=text,
            data=data,
        )
        self.bridge.journal.append(JournalEntry(len(self.bridge.journal) + 1, event))
        self.bridge.arrived.set()


Body = Callable[[FakeCall], Coroutine[Any, Any, Any]]


@dataclass(eq=False)
class FakeBridge:
    """A ``SkillGateway``. ``skills_`` are the skills with what they do."""

    bodies: dict[str, tuple[OfferedSkill, Body]]
    latency_s: Callable[[], float] = lambda: 0.0
    """How long it takes to begin a call, and to hear of an event."""
    journal: list[JournalEntry] = field(default_factory=list)
    calls_: dict[str, FakeCall] = field(default_factory=dict)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    refuse: Callable[[str], bool] = lambda skill: False
    lose: Callable[[str], Literal["", "rejected", "lost"]] = lambda skill: ""
    """Whether calls of a skill are lost, and when."""
    orders: dict[str, int] = field(default_factory=dict)
    """The numbers of operators' newest orders to robots."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def skills(self) -> list[OfferedSkill]:
        return [skill for skill, _ in self.bodies.values()]

    async def call(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        caller: str,
        on_duplicate: OnDuplicate | None = None,
        idempotency_key: str | None = None,
        on_loss: OnLoss | None = None,
        robot_order: int | None = None,
    ) -> str:
        if not (latency_s := self.latency_s()):
            return self._begin(skill, arguments, caller)
        # What is on its way is not called back, and its answer takes as long.
        sent = asyncio.get_running_loop().create_task(self._begin_later(latency_s, skill, arguments, caller))
        sent.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(sent)

    async def _begin_later(self, latency_s: float, skill: str, arguments: Mapping[str, Any], caller: str) -> str:
        await asyncio.sleep(latency_s)
        call_id = self._begin(skill, arguments, caller)
        await asyncio.sleep(latency_s)
        return call_id

    def _begin(self, skill: str, arguments: Mapping[str, Any], caller: str) -> str:
        if self.refuse(skill):
            raise CallRejectedError(f"{skill} is busy")
        call = FakeCall(f"c{next(self._numbers)}", skill, dict(arguments), caller, clock.monotonic(), self)
        self.calls_[call.id] = call
        unrun = self.lose(skill)
        refused = {"refused": True} if unrun == "rejected" else {}
        call.send("open", skill, arguments=dict(arguments), parent="", **refused)
        if unrun:
            self._close(call, Outcome(unrun), "the module hangs")
            return call.id
        call.task = asyncio.get_running_loop().create_task(self._run(call))
        call.task.add_done_callback(lambda task: self._close(call, Outcome.CANCELLED, call.reason, not_run=True))
        return call.id

    async def _run(self, call: FakeCall) -> None:
        outcome, text, result = Outcome.COMPLETED, "done", None
        try:
            result = await self.bodies[call.skill][1](call)
        except asyncio.CancelledError:
            outcome, text = Outcome.CANCELLED, call.reason
        except SkillError as error:
            outcome, text = Outcome.FAILED, str(error)
        self._close(call, outcome, text, result)

    def _close(
        self, call: FakeCall, outcome: Outcome, text: str, result: object = None, *, not_run: bool = False
    ) -> None:
        """Once; also for a task that was cancelled before its first step, of which nothing has run."""
        if call.outcome is None:
            call.outcome, call.ended_at = outcome, clock.monotonic()
            more: dict[str, Any] = {NOT_RUN: True} if not_run else {}
            if call.reason and outcome in (Outcome.FAILED, Outcome.LOST):
                more |= {TO_END: call.reason}
            call.send("close", text, outcome=outcome.value, result=result, **more)

    async def cancel(self, call_id: str, reason: str) -> None:
        call = self.calls_[call_id]
        if call.task is not None and not call.reason:
            call.reason = reason
            call.task.cancel()

    async def cancel_calls(self, call_ids: Collection[str], reason: str) -> None:
        for call_id in call_ids:
            await self.cancel(call_id, reason)

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        return [
            CallView(
                call_id=call.id,
                skill=call.skill,
                module="skills",
                caller=call.caller,
                parent="",
                arguments=dict(call.arguments),
                state="open" if call.outcome is None else "closed",
                outcome=call.outcome,
                last_seq=call.seq,
            )
            for call in self.calls_.values()
            if not open_only or call.outcome is None
        ]

    async def offset(self) -> int:
        return len(self.journal)

    async def robot_orders(self) -> Mapping[str, int]:
        return self.orders

    async def events(
        self, *, after: int, caller: str | None = None, call_id: str | None = None
    ) -> AsyncIterator[JournalEntry]:
        while True:
            while after < len(self.journal):
                entry = self.journal[after]
                after += 1
                latency_s = self.latency_s()
                if latency_s:
                    await asyncio.sleep(latency_s)
                if caller in (None, entry.event.caller):
                    yield entry
            self.arrived.clear()
            await self.arrived.wait()

    async def close(self) -> None:
        tasks = [call.task for call in self.calls_.values() if call.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(eq=False)
class Line:
    """The link of an agent's process to the bridge. Once it is ``cut`` nothing passes, as of a killed one."""

    bridge: FakeBridge
    was_cut: bool = False
    on_its_way: bool = False

    def cut(self, on_its_way: bool = False) -> None:
        """``on_its_way``: the next call that is begun has left the process when it dies, its answer is too late."""
        self.was_cut, self.on_its_way = True, on_its_way

    async def skills(self) -> list[OfferedSkill]:
        await self._pass()
        return await self.bridge.skills()

    async def call(self, skill: str, arguments: Mapping[str, Any], **options: Any) -> str:
        if self.was_cut and self.on_its_way:
            self.on_its_way = False
            await self.bridge.call(skill, arguments, **options)
        await self._pass()
        return await self.bridge.call(skill, arguments, **options)

    async def cancel(self, call_id: str, reason: str) -> None:
        await self._pass()
        await self.bridge.cancel(call_id, reason)

    async def cancel_calls(self, call_ids: Collection[str], reason: str) -> None:
        await self._pass()
        await self.bridge.cancel_calls(call_ids, reason)

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        await self._pass()
        return await self.bridge.calls(open_only=open_only)

    async def offset(self) -> int:
        await self._pass()
        return await self.bridge.offset()

    async def robot_orders(self) -> Mapping[str, int]:
        await self._pass()
        return await self.bridge.robot_orders()

    async def events(
        self, *, after: int, caller: str | None = None, call_id: str | None = None
    ) -> AsyncIterator[JournalEntry]:
        async for entry in self.bridge.events(after=after, caller=caller, call_id=call_id):
            await self._pass()
            yield entry

    async def _pass(self) -> None:
        if self.was_cut:
            await asyncio.get_running_loop().create_future()
