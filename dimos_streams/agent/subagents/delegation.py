"""Sub-agents: a task of its own for another prompt with fewer skills, run by the same loop, within a mission."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.call_scope import CallScope
from dimos_streams.agent.calls.open_call import Deliver, OpenCall
from dimos_streams.agent.context.conversation import Conversation
from dimos_streams.agent.context.transcript import LoopTranscript
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.missions.budget import check_depth
from dimos_streams.agent.missions.message_queue import MessageQueue, OperatorInput
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.missions.stop_conditions import Progress, StopCondition
from dimos_streams.agent.policies.gates.allowed import AllowedGate
from dimos_streams.agent.policies.gates.base import Reviewer
from dimos_streams.agent.policies.skill_selection import SkillSelection
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.subagents.settings import SubAgent
from dimos_streams.agent.subagents.sub_mission import SubLog, SubMission, Subset, hand_back_tool
from dimos_streams.agent.tools.call_result import CallResult
from dimos_streams.agent.tools.local_tools import Arguments, LocalTool, LocalTools
from dimos_streams.agent.tools.toolbox import Toolbox
from dimos_streams.common.tasks import end_tasks
from dimos_streams.errors import DimosStreamsError, SkillError, suggest

DELEGATE = "delegate"
HANDED_BACK = "handed_back"
"""The reason for which the turn of a sub-agent stops that has handed back."""


@functools.lru_cache(maxsize=100)
def _arguments_for(agents: tuple[str, ...]) -> type[Arguments]:
    """Return the arguments of ``delegate``. To make such a class takes as long as a fifth of an agent."""
    task = Annotated[str, Field(min_length=1, description="All that the agent needs to know; it has not seen this.")]
    calls = Annotated[list[str], Field(description="Ids of running calls whose updates are for it from now on.")]
    fields: dict[str, Any] = {
        "agent": (Literal[agents], ...),
        "task": (task, ...),
        "calls": (calls, Field(default_factory=list)),
    }
    return create_model("Delegate", __base__=Arguments, **fields)


class Delegation:
    """Runs sub-missions. ``tools`` makes the model's tool for it.

    A call belongs to whoever began it, and its updates go there; calls may be handed over with the task. What is
    still open when the sub-mission ends goes to whoever delegated, as does what was not read yet: each result comes
    once. The sub-mission is over when none of its calls is open and nothing is left to do, or when it has handed
    back. Its usage counts for its parent, too.
    """

    def __init__(
        self,
        agents: Mapping[str, SubAgent],
        *,
        name: str,
        make_loop: Callable[[LoopParts, str], AgentLoop],
        make_model: Callable[[str], ModelInUse],
        tools_for: Callable[[CallScope], Iterable[LocalTool]],
    ) -> None:
        """``name`` is the agent's; ``make_loop`` gets the parts and a name; ``make_model`` the name
        of a model; ``tools_for`` returns the tools that each sub-agent has, with the calls in its reach."""
        self._agents = dict(agents)
        self._name = name
        self._make_loop = make_loop
        self._make_model = make_model
        self._tools_for = tools_for
        self._numbers = itertools.count(1)
        self._working: list[SubMission] = []

    def hear(self, input: OperatorInput) -> bool:
        """Give the operator's input to the innermost sub-agent that is at work and has not handed back. Return False
        if there is none."""
        work = next((each for each in reversed(self._working) if not each.closed), None)
        if work is not None:
            work.hear(input)
        return work is not None

    def withdraw(self, mission: Mission) -> None:
        """Withdraw the input of a mission that was ended: it is no order any more for the sub-agents that were given
        it."""
        for work in self._working:
            work.parts.transcript.conversation.withdraw(mission.id)
            work.loop.withdraw(mission)

    def parts_of(self, missions: Iterable[Mission]) -> LoopParts | None:
        """The parts of the sub-mission that is among the missions, or None if none at work is."""
        missions = tuple(missions)
        return next((work.parts for work in reversed(self._working) if work.mission in missions), None)

    def scope(self, calls: CallManager, mission: Mission | None = None, deliver: Deliver | None = None) -> CallScope:
        """The calls in reach of a sub-mission's loop, or of the agent's own."""
        return CallScope(calls, self._whose, mission, deliver)

    def _whose(self, call: OpenCall) -> str:
        owner = self._owner(call)
        return f"agent {self._name!r}" if owner is None else f"sub-agent {owner.agent!r}"

    def _owner(self, call: OpenCall) -> SubMission | None:
        """The innermost sub-mission that a call is of; None for the agent itself."""
        return next((work for work in reversed(self._working) if work.mission in call.missions), None)

    def held_to(self, agents: Iterable[str], toolbox: Toolbox) -> Reviewer:
        """The reviewer of a toolbox, which holds calls to the lists of sub-agents as well, the outermost first. One
        that is not in the config any more has no skills."""
        reviewer = toolbox.reviewer
        for agent in agents:
            entries = self._agents[agent].skills if agent in self._agents else ()
            gate = AllowedGate(SkillSelection(entries, self._name), toolbox.catalog.all_named)
            reviewer = Subset(reviewer, gate, (*reviewer.agents, agent))
        return reviewer

    def wake(self) -> None:
        """Let all loops look again, because something may have changed (a pause has ended)."""
        for work in self._working:
            work.loop.wake()

    def unrecorded_offset(self) -> int | None:
        """The oldest offset that a loop at work has dealt with and that is not in the record yet, or None."""
        if not self._working:
            return None
        offsets = [work.loop.unrecorded_offset() for work in self._working]
        return min((offset for offset in offsets if offset is not None), default=None)

    def tools(self, parts: LoopParts) -> list[LocalTool]:
        """The tool ``delegate`` for the loop with these parts; empty if there are no sub-agents."""
        if not self._agents:
            return []

        async def run(arguments: Any, missions: tuple[Mission, ...]) -> CallResult:
            return await self.run(parts, arguments.agent, arguments.task, tuple(arguments.calls), missions)

        listed = "\n".join(f"- {name}: {agent.description}" for name, agent in self._agents.items())
        return [
            LocalTool(
                name=DELEGATE,
                description=f"Give a task to another agent and wait for its report. Agents:\n{listed}",
                arguments=_arguments_for(tuple(self._agents)),
                run=run,
            )
        ]

    async def run(
        self,
        parts: LoopParts,
        agent: str,
        task: str,
        handed: tuple[str, ...] = (),
        missions: tuple[Mission, ...] = (),
    ) -> CallResult:
        """Let a sub-agent do a task; return its answer. Raises ``SkillError`` for an unknown agent or call, or one
        too deep."""
        if agent not in self._agents:
            raise SkillError(f"no agent is called {agent!r}{suggest(agent, self._agents)}")
        parent = missions[0] if missions else None
        check_depth((parent.depth if parent else 0) + 1, parts.model.limits)
        calls = await self._named(parts, handed)
        work = self._prepare(parts, agent, task, missions)
        work.parts.transcript.emit(
            EventKind.SUB_MISSION_START, (work.mission.id,), agent=agent, task=task, calls=list(handed)
        )
        self._working.append(work)
        work.take_over(calls)
        try:
            await self._work(work, task)
        finally:
            work.close()
            self._working.remove(work)  # not before: until then what it has not read counts as unrecorded
            work.parts.transcript.emit(EventKind.SUB_MISSION_END, (work.mission.id,), reason=work.mission.reason)
        return _answer(work, agent)

    async def _named(self, parts: LoopParts, ids: tuple[str, ...]) -> list[OpenCall]:
        """The calls that the loop with these parts hands over. Raises ``SkillError`` for one that is not its own."""
        asking = next((work for work in self._working if work.parts is parts), None)
        calls = []
        for id in dict.fromkeys(ids):
            call = parts.scope.find(id)
            if call is None or self._owner(call) is not asking:
                raise await parts.scope.refusal(id)
            calls.append(call)
        return calls

    def _prepare(self, parts: LoopParts, agent: str, task: str, missions: tuple[Mission, ...]) -> SubMission:
        """Return a sub-mission that can begin. What its loop takes from ``parts`` it shares with the loop of whoever
        delegates; the rest is its own."""
        over, parent = asyncio.Event(), missions[0] if missions else None
        number, described = next(self._numbers), self._agents[agent]
        id = f"{parent.id if parent else 'agent'}/{number}"
        mission = Mission(id, over.set, input=task, parent=parent, on_end=self._ended)
        work = SubMission(agent, mission, MessageQueue(parts.queue.capacity), parts, missions, over)
        scope = self.scope(parts.scope.calls, mission, work.deliver)
        conversation, local = Conversation(described.prompt), LocalTools(self._tools_for(scope))
        log = SubLog(parts.transcript.events, mission, conversation)
        child = LoopParts(
            queue=work.queue,
            model=self._make_model(described.model) if described.model else parts.model,
            transcript=LoopTranscript(log, conversation, parts.transcript.results),
            toolbox=Toolbox(parts.toolbox.catalog, local, self.held_to([agent], parts.toolbox)),
            scope=scope,
            stop_policy=parts.stop_policy.for_sub_agent(_when_handed_back(work)),
            oversight=parts.oversight,
        )
        local.add([hand_back_tool(work), *self.tools(child)])
        work.loop = self._make_loop(child, f"{agent}-{number}")
        return work

    def _ended(self, mission: Mission) -> None:
        for work in self._working:
            if work.mission is not mission or mission.ended == HANDED_BACK:
                continue
            if work.report is None:
                work.give_back(all=False)
            work.loop.on_end(mission)  # also what it has begun behind handing back

    async def _work(self, work: SubMission, task: str) -> None:
        """Run a sub-mission until it is over. Calls that run when the agent stops go on, as the agent's own do."""
        work.queue.put_nowait(OperatorInput(task, (work.mission,), speaker="task"))
        loop = asyncio.get_running_loop().create_task(work.loop.run(), name=f"sub-mission {work.mission.id}")
        over = asyncio.ensure_future(work.over.wait())
        try:
            await asyncio.wait([loop, over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
            await end_tasks(loop)
            if work.parts.model is not work.parent.model:
                await work.parts.model.close()
        error = None if loop.cancelled() else loop.exception()
        if isinstance(error, DimosStreamsError):
            raise SkillError(f"the sub-mission failed: {error}") from error
        if error is not None:  # a defect, which whoever has called this logs with its place
            raise error


def _answer(work: SubMission, agent: str) -> CallResult:
    mission = work.mission
    text = work.report if work.report is not None else mission.text
    failed = work.report is None and mission.reason != "completed"
    said = f"{agent}: {text}" if text else f"{agent} has nothing to say"
    lines = [f"{said} (ended: {mission.reason})" if failed else said]
    left = [call for call in work.left if call.close is None]
    lines += [f"{call.skill} (call {call.call_id}) goes on; what follows will be reported." for call in left]
    return CallResult("\n".join(lines), is_error=failed)


def _when_handed_back(work: SubMission) -> StopCondition:
    """Return the condition by which a sub-agent's turn also stops when it has handed back. What the same answer has
    begun behind ``hand_back`` is then given back, too: nobody would hear of it any more."""

    def has_handed_back(progress: Progress) -> str | None:
        if work.report is None:
            return None
        work.give_back(all=True)
        return HANDED_BACK

    return has_handed_back
