"""A sub-mission while it runs: its loop's parts, and the owner of its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast

from pydantic import Field

from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.context.conversation import Conversation
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.missions.message_queue import CallUpdate, MessageQueue, OperatorInput
from dimos_streams.agent.missions.mission import Mission, release_all
from dimos_streams.agent.models.protocol import ToolSchema
from dimos_streams.agent.policies.gates.allowed import AllowedGate
from dimos_streams.agent.policies.gates.base import CallRequest, Refuse, Reviewer, Verdict
from dimos_streams.agent.record.agent_events import EventSink, data_from, sub_of
from dimos_streams.agent.record.kind import Kind, P
from dimos_streams.agent.tools.local_tools import Arguments, LocalTool
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.gateway import OfferedSkill

HAND_BACK = "hand_back"


class SubLog:
    """The agent's event log, as a sub-agent's loop writes to it: events are marked, and make its conversation."""

    def __init__(self, log: EventSink, mission: Mission, conversation: Conversation) -> None:
        self._log = log
        self._mission = mission
        self._conversation = conversation

    def emit(self, kind: Kind[P, Any], missions: Sequence[str] = (), *phase: P.args, **data: P.kwargs) -> AgentEvent:
        """See ``EventSink``."""
        sub, concerned = self._mission.id, dict.fromkeys(missions)
        ancestor = self._mission.parent
        while sub in concerned and ancestor is not None:  # so that the record of each mission is complete
            concerned[ancestor.id] = None
            ancestor = ancestor.parent
        marked = {"sub": sub, **data_from(phase, data)}
        event = self._log.emit(cast("Kind[..., Any]", kind), tuple(concerned), **marked)
        if sub_of(event) == sub:  # a log within this one marks its own
            self._conversation.apply(event)
        return event


@dataclass(frozen=True, slots=True)
class Subset:
    """The parent's reviewer, for some skills only."""

    reviewer: Reviewer
    gate: AllowedGate
    agents: tuple[str, ...]
    """See ``Reviewer``."""

    async def review(self, request: CallRequest) -> Verdict:
        own = await self.gate.review(request)
        if isinstance(own, Refuse):
            return own
        verdict = await self.reviewer.review(request)
        if isinstance(verdict, Refuse):
            return verdict
        return replace(verdict, again=lambda arguments: own.again(arguments) or verdict.again(arguments))

    def tool(self, skill: OfferedSkill) -> ToolSchema | None:
        return self.reviewer.tool(skill) if self.gate.allowed(skill) else None


@dataclass(slots=True, eq=False)
class SubMission:
    """One sub-mission, and the owner of its calls while it runs."""

    agent: str
    """The sub-agent's name."""
    mission: Mission
    queue: MessageQueue
    parent: LoopParts
    """The parts of the loop that has delegated."""
    parent_missions: tuple[Mission, ...]
    over: asyncio.Event
    handed: dict[str, tuple[Mission, ...]] = field(default_factory=dict)
    """The calls that came with the task, by id, with the missions that they belonged to."""
    report: str | None = None
    """The report with which it handed back, or None if it has not."""
    loop: AgentLoop = field(init=False)
    left: list[OpenCall] = field(default_factory=list)
    """The calls that went on when they were given back."""
    closed: bool = False

    @property
    def parts(self) -> LoopParts:
        """The parts of its loop."""
        return self.loop.parts

    async def deliver(self, update: CallUpdate) -> None:
        """Deliver an update of its calls; once it is closed, to its parent."""
        if self.closed:
            update = replace(update, missions=self._without_this(update.missions))
            await (self.parent.scope.deliver or self.parent.queue.put)(update)
            return
        await self.queue.put(update)
        if self.closed:
            self._leave_unread()

    def hear(self, input: OperatorInput) -> None:
        """Give the operator's input to the sub-mission, to which it then belongs, too."""
        if input.now:
            self.loop.cut()
        self.queue.put_nowait(replace(input, missions=(*input.missions, self.mission)))

    def take_over(self, calls: Iterable[OpenCall]) -> None:
        """Take over calls with the task: they keep the sub-mission going, in place of its parent's missions. What
        waits of them comes along, so that each call is heard in order."""
        for call in calls:
            self.handed[call.call_id] = call.missions
            others = tuple(mission for mission in call.missions if mission not in self.parent_missions)
            call.hand_over((*others, self.mission), self.deliver)
            self._take_waiting(call)

    def _take_waiting(self, call: OpenCall) -> None:
        for item in self.parent.queue.take_where(
            lambda item: isinstance(item, CallUpdate) and item.event.call_id == call.call_id
        ):
            self.queue.put_nowait(replace(item, missions=call.missions))
            release_all(item.missions)

    def give_back(self, *, all: bool) -> None:
        """Give open calls back to the parent: those that came with the task, or ``all``."""
        for call in self.parent.scope.calls.known.open:
            if self.mission in call.missions and (all or call.call_id in self.handed):
                missions = self.handed.get(call.call_id)
                missions = self._without_this(call.missions) if missions is None else missions
                call.hand_over(missions, self.parent.scope.deliver)
                self.left.append(call)

    def close(self) -> None:
        """Close it. What it has not read goes to its parent, as do the updates of calls that it leaves open."""
        self.closed = True
        self._leave_unread()

    def _leave_unread(self) -> None:
        for item in self.queue.take_all():
            if not isinstance(item, OperatorInput) or item.missions != (self.mission,):  # all but its own task
                self.parent.queue.put_nowait(replace(item, missions=self._without_this(item.missions)))
            release_all(item.missions)

    def _without_this(self, missions: tuple[Mission, ...]) -> tuple[Mission, ...]:
        """The missions with the parent's in place of the sub-mission."""
        if self.mission not in missions:
            return missions
        kept = dict.fromkeys(mission for mission in missions if mission is not self.mission)
        return (*kept, *(mission for mission in self.parent_missions if mission not in kept))


class _Report(Arguments):
    """The arguments of ``hand_back``."""

    report: Annotated[str, Field(description="What you have done and found out; calls that run go on.")]


def hand_back_tool(work: SubMission) -> LocalTool:
    """``hand_back``, by which a sub-agent ends its task itself."""

    async def hand_back(arguments: _Report, missions: tuple[Mission, ...]) -> str:
        work.report = arguments.report
        work.give_back(all=True)
        work.close()
        return "handed back"

    return LocalTool(
        name=HAND_BACK,
        description="End your task here, with a report. Without it the task ends when nothing is left to do.",
        arguments=_Report,
        run=hand_back,
    )
