"""An agent without the module around it: its parts put together."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from dimos_streams import clock
from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.event_reader import EventReader
from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.context.images import Pictures
from dimos_streams.agent.context.results import ResultPipeline, ResultStore
from dimos_streams.agent.context.transcript import Transcript
from dimos_streams.agent.control.console_watch import ConsoleWatch
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.control.dialogue import Foreground
from dimos_streams.agent.control.others_calls import OthersCalls
from dimos_streams.agent.control.oversight import Oversight
from dimos_streams.agent.control.robot_hold import RobotHold
from dimos_streams.agent.control.stop_words import StopWords
from dimos_streams.agent.hold_reasons import HoldReasons, hold_for_given_up, pause_for_unended
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.reviews import Reviews
from dimos_streams.agent.loop.states import LoopState, StateMachine
from dimos_streams.agent.memory import AgentMemory
from dimos_streams.agent.missions.message_queue import MessageQueue
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.missions.stop_conditions import RobotState
from dimos_streams.agent.model_factory import ModelFactory
from dimos_streams.agent.model_switch import ModelSwitch
from dimos_streams.agent.model_watch import ModelWatch
from dimos_streams.agent.models.offline_grammar import robots_of
from dimos_streams.agent.open_missions import OpenMissions
from dimos_streams.agent.operators.saying import InputHandler
from dimos_streams.agent.operators.snapshots import Snapshots
from dimos_streams.agent.operators.stop_order import StopOrder
from dimos_streams.agent.permissions import agent_reviewer, make_gate_state
from dimos_streams.agent.policies.repetition import RepetitionGuard
from dimos_streams.agent.policies.runaway import RunawayGuard, RunawayGuards
from dimos_streams.agent.policies.stop_policy import StopPolicy
from dimos_streams.agent.recovery import Recovery
from dimos_streams.agent.resumption.state import Resumption
from dimos_streams.agent.skill_watch import SkillWatch
from dimos_streams.agent.subagents.delegation import Delegation
from dimos_streams.agent.subagents.sub_mission import of_sub_agent
from dimos_streams.agent.tools.local_tools import LocalTools
from dimos_streams.agent.tools.own_tools import OwnTools
from dimos_streams.agent.tools.toolbox import Toolbox
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.gateway import SkillGateway
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory


class AgentCore:
    """Everything of one agent on one loop: what operators' skills act on. Call ``run`` with the journal offset to
    read from."""

    def __init__(
        self,
        config: AgentConfig,
        *,
        name: str,
        gateway: SkillGateway,
        rng: random.Random,
        record_dir: Path | None,
        run_dir: Path | None = None,
        robot: Callable[[], RobotState] = RobotState,
        directory: ModuleDirectory | None = None,
        resumption: Resumption | None,
        on_warnings: Callable[[], None] = lambda: None,
    ) -> None:
        """``record_dir`` is where missions are recorded, or None for nowhere; ``run_dir`` has pictures. ``directory``
        knows the velocity gates; it is None where there are none. ``resumption`` is what the record says of an agent
        of that name that was here before, or None if there was none. ``on_warnings`` is called when what may be wrong
        with the agent's skills has changed.

        Raises ``UserError`` for a bad config.
        """
        self.config, self.name, self.gateway, self.robot, self.resumption = config, name, gateway, robot, resumption
        # Each part is made of parts above it; where it has to hear of parts below it, ``_connect`` sees to that.
        self.memory = AgentMemory(config, name, record_dir, resumption)
        self.events, self.record, self.conversation = self.memory.events, self.memory.record, self.memory.conversation
        emit, undo_log = self.events.emit, self.memory.undo_log
        self.changed = Listeners[[]]()
        """Called whenever something that operators see may have changed."""

        # What holds the agent and its robot back.
        self.queue = MessageQueue(config.queue_capacity)
        self.control = Control(emit)
        self.foreground = Foreground(emit, self.queue.put_nowait)
        machine = StateMachine()
        self.hold_reasons = HoldReasons(self.control, machine)
        self.robot_hold = RobotHold(
            name,
            why=self.hold_reasons.why,
            emit=emit,
            on_change=self.changed.notify,
            directory=directory,
            bound_s=config.limits.hold_bound_s,
        )

        # Skills, and calls of them.
        self.catalog = catalog = SkillCatalog(gateway, module=name)
        missions: dict[str, Mission] = {}
        self.gate_state = make_gate_state(config, name, emit, catalog, missions)
        self.calls = CallManager(
            gateway,
            name,
            self.queue.put,
            # The moment is in the keys so that a restarted agent does not repeat the ones it used before.
            key_prefix=f"{name}/{clock.utime():x}",
            on_given_up=partial(hold_for_given_up, self.control, catalog, self.robot_hold, emit),
        )
        self.reader = EventReader(gateway, name, self.calls.incoming, offset=resumption.offset if resumption else 0)

        # The model, and what it may use besides skills.
        self.models = ModelFactory(config, emit, rng=rng, lessons=resumption.lessons if resumption else {})
        self.model = model = self.models.in_use(config.model)
        self.model_watch = ModelWatch()
        store = ResultStore(config.results.store_bytes)
        tools = OwnTools(store, self.gate_state.plans, self.foreground, self._needs_plans, config.call_tools_always)
        self.others = OthersCalls(name, gateway, catalog, self.control, lambda: model.limits.abort_bound_s)
        self.delegation = Delegation(
            config.agents,
            name=name,
            make_loop=lambda parts, sub: AgentLoop(parts, undo_log, StateMachine(), {}, name=f"{name}/{sub}"),
            make_model=self.models.in_use,
            tools_for=tools.make,
        )

        # The loop, and the missions that it works on.
        parts = self._loop_parts(tools, ResultPipeline(store, config.results, Pictures(run_dir)))
        self.loop = AgentLoop(parts, undo_log, machine, missions, name=name)
        self.missions = OpenMissions(self.loop, self.delegation, model, emit)
        self.model_switch = ModelSwitch(self.models, model, self.loop, emit)
        self.skill_watch = SkillWatch(config, name, model, parts.toolbox, emit, on_change=on_warnings)
        self.reviews = Reviews(
            self.calls, lambda whose: self.delegation.parts_of(whose) or parts, self.gate_state.approvals.call_begun
        )

        # What begins the agent's work, and what operators reach it by.
        loop, approvals = self.loop, self.gate_state.approvals
        enabled, switch = self.gate_state.enabled, self.model_switch
        self.recovery = Recovery(resumption, gateway, loop, self.missions, self.delegation, enabled, switch)
        words = StopWords(config.stop_words)
        self.stop_order = StopOrder(words, self._names, loop, self.missions, self.others, self.hold_reasons, emit)
        self.input_handler = InputHandler(
            loop=loop,
            queue=self.queue,
            conversation=self.conversation,
            control=self.control,
            missions=self.missions,
            delegation=self.delegation,
            foreground=self.foreground,
            approvals=approvals,
            stop=self.stop_order,
        )
        self.console = ConsoleWatch(approvals, self.control, emit, self._abort_unwatched)
        self.snapshots = Snapshots(name, self.events, loop, self.gate_state, self.model_watch, self.skill_watch)
        self._restore()
        self._connect()

    def _loop_parts(self, own_tools: OwnTools, results: ResultPipeline) -> LoopParts:
        """Return the parts of the agent's own loop; sub-agents share some of them."""
        config, model, control, catalog = self.config, self.model, self.control, self.catalog
        scope = self.delegation.scope(self.calls)
        reviewer = agent_reviewer(
            config, self.gate_state, model=model, control=control, robot=self.robot, refresh=catalog.refresh
        )
        limits = config.repetition
        parts = LoopParts(
            queue=self.queue,
            model=model,
            transcript=Transcript(self.events, self.conversation, results),
            toolbox=Toolbox(catalog, LocalTools(own_tools.make(scope)), reviewer),
            scope=scope,
            stop_policy=StopPolicy(
                conditions=config.stop_when.all(),
                robot=self.robot,
                guards=RunawayGuards(
                    lambda: RunawayGuard(limits, model.limits.actions, model.limits.actions_per_hour)
                ),
                new_repetition=partial(RepetitionGuard, limits),
            ),
            oversight=Oversight(control, self.foreground, self.robot_hold, self.others),
        )
        parts.toolbox.local.add(self.delegation.tools(parts))
        return parts

    def _needs_plans(self) -> bool:
        return self.model.limits.motions is not None or bool(self.config.zones)

    def _names(self) -> Iterable[str]:
        """The names by which operators may call the agent and its robots."""
        return "robot", *self.name.split("/"), *robots_of(self.catalog.offered)

    @property
    def holding(self) -> bool:
        """True if the robot has to be still."""
        return bool(self.hold_reasons.why())

    async def run(self, offset: int) -> None:
        """Read events from an offset on and run the loop, until cancelled."""
        self.reader.offset = offset
        reading = asyncio.get_running_loop().create_task(self.reader.run(), name=f"{self.name}:events")
        looping = asyncio.get_running_loop().create_task(self.loop.run(), name=f"{self.name}:loop")
        try:
            done, _ = await asyncio.wait([reading, looping], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            await looping  # the gateway has ended its stream
        finally:
            await end_tasks_silently(reading, looping)
            await self.close()

    async def close(self) -> None:
        """Let go of everything. Twice is fine."""
        self.pause_what_may_move()
        self.gate_state.approvals.close()
        try:
            await self.calls.stop()
            self.missions.close()
            await self.model.close()
        finally:
            self.record.close()

    def pause_what_may_move(self) -> None:
        """Pause if calls that move the robot were asked to end, and nobody waits for that any more."""
        pause_for_unended(self.control, self.catalog, self.calls.known.open)

    def _restore(self) -> None:
        """Take in the events of the process before this one."""
        if self.resumption is not None:
            self.memory.restore(self.resumption.events)
            self.gate_state.restore(self.resumption.events)
            self.resumption.events.clear()  # they may be many, and are of no more use

    def _connect(self) -> None:
        """Let parts hear of what happens in those that are made of them. Whatever is to outlive the process is
        written before anybody hears of it."""
        self.record.offset = self._settled_offset
        self.memory.listen()
        self.events.listen(self._on_event)
        self.events.listen(self.reviews.apply)
        self.calls.incoming.closed.add(self.gate_state.approvals.call_ended)
        self.calls.incoming.adopted.add(self.reviews.note_begun)
        self.catalog.refreshed.add(self.skill_watch.look)
        self.models.retried.add(self.model_switch.note_retry)
        self.hold_reasons.changed.add(self.robot_hold.changed)
        for changed in (self.control.changed, self.foreground.changed):
            changed.add(self._wake)
        for changed in (self.control.changed, self.foreground.changed, self.loop.machine.changed):
            changed.add(self.robot_hold.changed)
            changed.add(self.changed.notify)

    def _on_event(self, event: AgentEvent) -> None:
        self.memory.apply(event)
        self.gate_state.apply(event, of_sub_agent=of_sub_agent(event))
        self.model_watch.apply(event)
        self.changed.notify()

    def _wake(self) -> None:
        self.loop.wake()
        self.delegation.wake()

    def _settled_offset(self) -> int:
        """The offset in the journal up to which everything is in the record."""
        offsets = (self.loop.unrecorded_offset(), self.delegation.unrecorded_offset())
        oldest = min((offset for offset in offsets if offset is not None), default=None)
        return self.reader.offset if oldest is None else oldest - 1

    def _abort_unwatched(self, why: str) -> None:
        if self.loop.missions and self.loop.state is not LoopState.CLOSED:
            self.loop.begin_abort(why)
