"""An agent without the module around it: its parts put together."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

from dimos_streams import clock
from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.event_reader import EventReader
from dimos_streams.agent.calls.open_call import CallContext, OpenCall
from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.context.images import Pictures
from dimos_streams.agent.context.results import ResultPipeline, ResultStore
from dimos_streams.agent.context.transcript import LoopTranscript
from dimos_streams.agent.control.oversight import Oversight
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.reviews import Reviews
from dimos_streams.agent.loop.states import LoopState, StateMachine
from dimos_streams.agent.memory import AgentMemory
from dimos_streams.agent.missions.message_queue import MessageQueue
from dimos_streams.agent.missions.mission import Mission, ids
from dimos_streams.agent.missions.stop_conditions import RobotState
from dimos_streams.agent.model_factory import ModelFactory
from dimos_streams.agent.model_switch import ModelSwitch
from dimos_streams.agent.model_watch import ModelWatch
from dimos_streams.agent.open_missions import OpenMissions
from dimos_streams.agent.operators.operator_side import OperatorSide
from dimos_streams.agent.operators.snapshots import Snapshots
from dimos_streams.agent.permissions import agent_reviewer, make_gate_state
from dimos_streams.agent.policies.stop_policy import StopPolicy
from dimos_streams.agent.policies.stopped_missions import OF_NONE
from dimos_streams.agent.recovery import Recovery
from dimos_streams.agent.skill_watch import SkillWatch
from dimos_streams.agent.subagents.delegation import Delegation
from dimos_streams.agent.tools.local_tools import LocalTools
from dimos_streams.agent.tools.own_tools import OwnTools
from dimos_streams.agent.tools.toolbox import Toolbox
from dimos_streams.agent.work import AgentWork
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.operator.robot_orders import NO_ORDER
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import SkillGateway
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory


class AgentCore:
    """Everything of one agent on one loop: what operators' skills act on. Call ``run`` with the journal offset to
    read from."""

    def __init__(
        self,
        config: AgentConfig,
        memory: AgentMemory,
        *,
        name: str,
        gateway: SkillGateway,
        rng: random.Random,
        run_dir: Path | None = None,
        robot: Callable[[], RobotState] = RobotState,
        directory: ModuleDirectory | None = None,
    ) -> None:
        """``run_dir`` has pictures. ``directory`` knows the velocity gates; it is None where there are none.

        Raises ``UserError`` for a bad config.
        """
        self.config, self.memory, self.name, self.gateway, self.robot = config, memory, name, gateway, robot
        self.events, self.record, self.conversation = memory.events, memory.record, memory.conversation
        self.changed: Listeners[[]] = Listeners()
        """Called whenever something that operators see may have changed."""
        emit, before = self.events.emit, memory.before
        # Each part is made of parts above it; where it has to hear of parts below it, ``_connect`` sees to that.

        # What comes to it, and what it works with.
        self.queue = MessageQueue(config.queue_capacity)
        self.catalog = SkillCatalog(gateway, module=name)
        self.models = ModelFactory(config, emit, rng=rng, lessons=before.lessons if before else {})
        self.model = self.models.in_use(config.model)

        # What holds it back, and the calls that it makes.
        machine, missions = StateMachine(), dict[str, Mission]()
        self.oversight = self._make_oversight(machine, directory)
        self.oversight.robot_stops.said = before.said_stop if before else NO_ORDER
        self.control, self.foreground = self.oversight.control, self.oversight.foreground
        self.gate_state = make_gate_state(config, name, emit, self.catalog, missions)
        self.calls = self._make_calls()
        self.reader = EventReader(gateway, name, self.calls.incoming, offset=before.offset if before else 0)

        # Its work, what begins it, and what looks after it.
        self.work = self._make_work(machine, missions, run_dir)
        self.loop, self.missions = self.work.loop, self.work.missions
        self.model_switch = ModelSwitch(self.models, self.loop)
        self.model_watch = ModelWatch()
        self.skill_watch = SkillWatch(config, name, self.loop.parts)
        self.reviews = Reviews(self.calls, self.work.parts_for, self.gate_state.approvals.decided.call_begun)
        self.recovery = Recovery(before, gateway, self.work, self.gate_state, self.model_switch)
        self.operators = self._make_operator_side()

        self.gate_state.restore(memory.restore())
        self._connect()

    def _make_oversight(self, machine: StateMachine, directory: ModuleDirectory | None) -> Oversight:
        return Oversight(
            self.name,
            self.events.emit,
            self.queue,
            self.gateway,
            self.catalog,
            limits=lambda: self.model.limits,
            directory=directory,
            aborting=lambda: machine.state is LoopState.SETTLING,
        )

    def _make_calls(self) -> CallManager:
        return CallManager(
            self.gateway,
            self.name,
            self.queue.put,
            # The moment is in the keys so that a restarted agent does not repeat the ones it used before.
            key_prefix=f"{self.name}/{clock.utime():x}",
            robot_order=lambda: self.oversight.robot_stops.newest,
            on_orders=self.oversight.robot_stops.catch_up,
            on_given_up=self.oversight.hold_for_given_up,
        )

    def _make_work(self, machine: StateMachine, missions: dict[str, Mission], run_dir: Path | None) -> AgentWork:
        config = self.config
        results = ResultStore(config.results.store_bytes)
        tools = OwnTools(results, self.gate_state.plans, self.foreground, self._needs_plans, config.call_tools_always)
        delegation = Delegation(
            config.agents,
            name=self.name,
            make_loop=self._sub_loop,
            make_model=self.models.in_use,
            tools_for=tools.make,
        )
        pipeline = ResultPipeline(results, config.results, Pictures(run_dir))
        parts = self._loop_parts(tools, delegation, LoopTranscript(self.events, self.conversation, pipeline))
        loop = AgentLoop(parts, self.memory.undo_log, machine, missions, name=self.name)
        before = self.memory.before
        return AgentWork(loop, delegation, OpenMissions(loop, delegation, before=before.begun if before else ()))

    def _loop_parts(self, own_tools: OwnTools, delegation: Delegation, transcript: LoopTranscript) -> LoopParts:
        """Return the parts of the agent's own loop; ``Delegation`` says which of them those of sub-agents share."""
        config, model, catalog = self.config, self.model, self.catalog
        scope = delegation.scope(self.calls)
        local = LocalTools(own_tools.make(scope))
        reviewer = agent_reviewer(
            config, self.gate_state, model=model, control=self.control, robot=self.robot, refresh=catalog.refresh
        )
        parts = LoopParts(
            queue=self.queue,
            model=model,
            transcript=transcript,
            toolbox=Toolbox(catalog, local, reviewer),
            scope=scope,
            stop_policy=StopPolicy.of_agent(
                config.stop_when.all(), config.repetition, self.robot, lambda: model.limits
            ),
            oversight=self.oversight,
        )
        local.add(delegation.tools(parts))
        return parts

    def _sub_loop(self, parts: LoopParts, name: str) -> AgentLoop:
        return AgentLoop(parts, self.memory.undo_log, StateMachine(), {}, name=f"{self.name}/{name}")

    def _needs_plans(self) -> bool:
        return self.model.limits.motions is not None or bool(self.config.zones)

    def _make_operator_side(self) -> OperatorSide:
        gate_state = self.gate_state
        snapshots = Snapshots(self.name, self.events, self.loop, gate_state, self.model_watch, self.skill_watch)
        return OperatorSide(self.name, self.config.stop_words, self.work, gate_state.approvals, snapshots)

    @property
    def holding(self) -> bool:
        """True if the robot has to be still."""
        return bool(self.oversight.hold_reasons.why())

    async def run(self, offset: int) -> None:
        """Read events from an offset on and run the loop, until cancelled."""
        self.reader.offset = offset
        deafen = self.oversight.robot_stops.listen()
        reading = asyncio.get_running_loop().create_task(self.reader.run(), name=f"{self.name}:events")
        looping = asyncio.get_running_loop().create_task(self.loop.run(), name=f"{self.name}:loop")
        try:
            done, _ = await asyncio.wait([reading, looping], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            await looping  # the gateway has ended its stream
        finally:
            deafen()
            await end_tasks_silently(reading, looping)
            await self.close()

    async def close(self) -> None:
        """Let go of everything. Twice is fine."""
        self.pause_what_may_move()
        self.gate_state.approvals.close()
        self.loop.close()
        try:
            await self.calls.stop()
            self.missions.close()
            await self.model.close()
        finally:
            self.record.close()

    def pause_what_may_move(self) -> None:
        """Pause if calls that move the robot were asked to end, and nobody waits for that any more."""
        self.oversight.pause_for_unended(self.calls.known.open)

    def _note_closed(self, call: OpenCall, close: ToolEvent) -> None:
        self.gate_state.call_ended(close, ids(call.missions), by_agent=call.ended_by_agent)

    def _note_child_closed(self, whole: CallContext, close: ToolEvent, by_agent: bool) -> None:
        self.gate_state.child_ended(close, ids(whole.missions), by_agent=by_agent)

    def _note_orders(self, orders: frozenset[int]) -> None:
        missions = self.loop.missions.values()
        self.gate_state.robot_stopped((*ids(each for each in missions if not orders <= each.known_orders), OF_NONE))

    def _note_gates(self) -> None:
        self.gate_state.robot_stopped((*ids(self.loop.missions.values()), OF_NONE))

    def _connect(self) -> None:
        """Let parts hear of what happens in those that are made of them. Whatever is to outlive the process is
        written before anybody hears of it."""
        self.record.offset = self._settled_offset
        self.memory.listen()
        self.events.listen(self._on_event)
        self.events.listen(self.reviews.apply)
        self.calls.incoming.closed.add(self._note_closed)
        self.calls.incoming.child_closed.add(self._note_child_closed)
        self.calls.incoming.adopted.add(self.reviews.note_begun)
        self.oversight.robot_stops.ordered.add(self._note_orders)
        self.oversight.robot_stops.gates_changed.add(self._note_gates)
        self.catalog.refreshed.add(self.skill_watch.look)
        self.models.retried.add(self.model_switch.note_retry)
        robot_hold = self.oversight.robot_hold
        self.oversight.hold_reasons.changed.add(robot_hold.changed)
        for shown in (robot_hold.shown_changed, self.skill_watch.changed):
            shown.add(self.changed.notify)
        for changed in (self.control.changed, self.foreground.changed):
            changed.add(self.work.wake)
        for changed in (self.control.changed, self.foreground.changed, self.loop.machine.changed):
            changed.add(robot_hold.changed)
            changed.add(self.changed.notify)

    def _on_event(self, event: AgentEvent) -> None:
        self.memory.apply(event)
        self.gate_state.apply(event)
        self.model_watch.apply(event)
        self.changed.notify()

    def _settled_offset(self) -> int:
        """The offset in the journal up to which everything is in the record."""
        oldest = self.work.unrecorded_offset()
        return self.reader.offset if oldest is None else oldest - 1
