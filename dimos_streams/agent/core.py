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
from dimos_streams.agent.calls.skill_catalog import Offers
from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.context.images import Pictures
from dimos_streams.agent.context.results import ResultPipeline, ResultStore
from dimos_streams.agent.control.console_watch import ConsoleWatch
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.control.dialogue import Foreground
from dimos_streams.agent.control.others_calls import OthersCalls
from dimos_streams.agent.control.robot_hold import RobotHold
from dimos_streams.agent.control.stop_words import StopWords
from dimos_streams.agent.hold_reasons import HoldReasons, hold_for_given_up, pause_for_unended
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.loop.parts import LoopParts, ModelView, StopRules
from dimos_streams.agent.loop.reviews import Reviews
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.memory import AgentMemory
from dimos_streams.agent.missions.message_queue import MessageQueue
from dimos_streams.agent.missions.mission import ids
from dimos_streams.agent.missions.stop_conditions import RobotState
from dimos_streams.agent.model_factory import ModelFactory
from dimos_streams.agent.model_switch import ModelSwitch
from dimos_streams.agent.model_watch import ModelWatch
from dimos_streams.agent.models.offline_grammar import robots_of
from dimos_streams.agent.open_missions import OpenMissions
from dimos_streams.agent.operators.onlookers import Onlookers
from dimos_streams.agent.operators.saying import InputDesk
from dimos_streams.agent.operators.snapshots import Snapshots
from dimos_streams.agent.operators.stop_order import StopOrder
from dimos_streams.agent.permissions import check_step, permissions
from dimos_streams.agent.policies.gates.books import GateBooks
from dimos_streams.agent.recovery import Recovery
from dimos_streams.agent.resumption.state import Resumption
from dimos_streams.agent.skill_watch import SkillWatch
from dimos_streams.agent.subagents.delegation import Delegation
from dimos_streams.agent.subagents.sub_mission import of_sub_agent
from dimos_streams.agent.tools.local_tools import LocalTools
from dimos_streams.agent.tools.own_tools import OwnTools
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
        # The order of construction counts: each step takes parts that the steps before it made, and what listens to
        # events after ``_listen`` hears only events that are recorded. Callbacks name parts that are made later: none
        # is called before the agent runs.
        self.config = config
        self.name = name
        self.gateway = gateway
        self.robot = robot
        self.resumption = resumption
        self.onlookers = Onlookers()
        self.memory = AgentMemory(config, name, record_dir, self._settled_offset, resumption)
        self.events, self.record, self.conversation = self.memory.events, self.memory.record, self.memory.conversation
        self._make_control(directory)
        self._make_calls()
        self._make_models(rng, run_dir)
        self._listen()
        self._make_loop_and_missions(on_warnings)
        self._make_doors()

    def _make_control(self, directory: ModuleDirectory | None) -> None:
        """Make the parts that decide: the operator's hand, permissions, the hold on the robot."""
        config, emit = self.config, self.events.emit
        self.control = Control(emit, self._on_control)
        self.offers = Offers(self.gateway, module=self.name)
        self.books = GateBooks(
            config,
            emit,
            lambda skill, arguments: check_step(self.offers, self.books.allowed, skill, arguments),
            agent=self.name,
            offerings=self.offers.offerings,
            input=lambda missions: self.missions.input_of(missions),
        )
        self.console = ConsoleWatch(self.books.approvals, self.control, emit, self._abort_unwatched)
        self.queue = MessageQueue(config.queue_capacity, self._wake)
        self.foreground = Foreground(emit, self.queue.put_nowait, self._on_control)
        self.hold_reasons = HoldReasons(
            self.control, state=lambda: self.loop.state, on_change=lambda: self.robot_hold.changed()
        )
        self.robot_hold = RobotHold(
            self.name,
            why=self.hold_reasons.why,
            emit=emit,
            on_change=self.onlookers.notify,
            directory=directory,
            bound_s=config.limits.hold_bound_s,
        )

    def _make_calls(self) -> None:
        """Make what begins calls and reads their events."""
        # The moment is in the keys so that a restarted agent does not repeat the ones it used before.
        key_prefix = f"{self.name}/{clock.utime():x}"
        self.calls = CallManager(
            self.gateway,
            self.name,
            self.queue.put,
            key_prefix=key_prefix,
            on_given_up=partial(hold_for_given_up, self.control, self.offers, self.robot_hold, self.events.emit),
        )
        self.calls.incoming.closed.add(self.books.approvals.call_ended)
        read_up_to = self.resumption.offset if self.resumption else 0
        self.reader = EventReader(self.gateway, self.name, self.calls.incoming, offset=read_up_to)

    def _make_models(self, rng: random.Random, run_dir: Path | None) -> None:
        """Make the model, what it may use besides skills, and those to whom it may delegate."""
        config, results = self.config, ResultStore(self.config.results.store_bytes)
        lessons = self.resumption.lessons if self.resumption else {}
        self.models = ModelFactory(config, self.events.emit, rng=rng, lessons=lessons, missions=self._in_turn)
        self.model = self.models.in_use(config.model)
        self.model_watch = ModelWatch()
        self.results = ResultPipeline(results, config.results, Pictures(run_dir))
        plans, always = self.books.plans, config.call_tools_always
        self.own_tools = OwnTools(results, plans, self.foreground, self._needs_plans, always)
        self.delegation = Delegation(
            config.agents,
            name=self.name,
            make_loop=lambda parts, sub: AgentLoop(parts, self.memory.undo_log, name=f"{self.name}/{sub}"),
            make_model=self.models.in_use,
            tools_for=self.own_tools.make,
        )

    def _make_loop_and_missions(self, on_warnings: Callable[[], None]) -> None:
        config, name, memory = self.config, self.name, self.memory
        self.others = OthersCalls(
            name, self.gateway, self.offers, self.control, lambda: self.model.limits.abort_bound_s
        )
        self.loop = AgentLoop(self._loop_parts(), memory.undo_log, name=name, on_state=self._on_state)
        self.missions = OpenMissions(self.loop, self.delegation)
        self.model_switch = ModelSwitch(self.models, self.loop)
        self.skill_watch = SkillWatch(config, name, self.loop.parts, on_change=on_warnings)
        self.offers.refreshed.add(self.skill_watch.look)
        self.reviews = Reviews(
            self.calls,
            lambda missions: self.delegation.parts_of(missions) or self.loop.parts,
            self.books.approvals.call_begun,
        )
        self.calls.incoming.adopted.add(self.reviews.note_begun)
        self.events.listen(self.reviews.apply)

    def _loop_parts(self) -> LoopParts:
        """The parts of the agent's own loop; sub-agents share some of them."""
        config, scope = self.config, self.delegation.scope(self.calls)
        tools = [*self.own_tools.make(scope), *self.delegation.tools(lambda: self.loop.parts)]
        return LoopParts(
            model=self.model,
            queue=self.queue,
            calls=self.calls,
            scope=scope,
            events=self.events,
            view=ModelView(
                conversation=self.conversation, offers=self.offers, tools=LocalTools(tools), results=self.results
            ),
            permissions=permissions(
                config,
                self.books,
                model=self.model,
                control=self.control,
                foreground=self.foreground,
                robot_hold=self.robot_hold,
                robot=self.robot,
                open_motions=self.others.moving,
                refresh=self.offers.refresh,
            ),
            stop_rules=StopRules(conditions=config.stop_when.all(), robot=self.robot),
        )

    def _make_doors(self) -> None:
        """Make what begins the agent's work, and what operators reach it by."""
        books, loop, missions, delegation = self.books, self.loop, self.missions, self.delegation
        self.recovery = Recovery(
            self.resumption, self.gateway, loop, missions, delegation, books.enabled, self.model_switch, self.others
        )
        self.stop_order = StopOrder(
            StopWords(self.config.stop_words), self._names, loop, missions, self.others, self.hold_reasons
        )
        self.input_desk = InputDesk(loop, missions, delegation, self.foreground, books.approvals, self.stop_order)
        self.snapshots = Snapshots(
            self.name, self.events, loop, books, self.offers, self.robot_hold, self.model_watch, self.skill_watch
        )

    def _in_turn(self) -> tuple[str, ...]:
        return ids(self.loop.turn.missions) if self.loop.turn else ()

    def _needs_plans(self) -> bool:
        return self.model.limits.motions is not None or bool(self.config.zones)

    def _names(self) -> Iterable[str]:
        """The names by which operators may call the agent and its robots."""
        return "robot", *self.name.split("/"), *robots_of(self.offers.offered)

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
        self.books.approvals.close()
        try:
            await self.calls.stop()
            self.missions.close()
            await self.model.close()
        finally:
            self.record.close()

    def pause_what_may_move(self) -> None:
        """Pause if calls that move the robot were asked to end, and nobody waits for that any more."""
        pause_for_unended(self.control, self.offers, self.calls.open)

    def _listen(self) -> None:
        """Listen to the agent's events, so that whatever is to outlive the process is written before anybody hears of
        it."""
        if self.resumption is not None:
            self.memory.restore(self.resumption.events)
            self.books.restore(self.resumption.events)
            self.resumption.events.clear()  # they may be many, and are of no more use
        self.memory.listen()
        self.events.listen(self._on_event)

    def _on_event(self, event: AgentEvent) -> None:
        self.memory.apply(event)
        self.books.apply(event, of_sub_agent=of_sub_agent(event))
        self.model_watch.apply(event)
        self.onlookers.notify()

    def _on_control(self) -> None:
        self._wake()
        self.robot_hold.changed()
        self.onlookers.notify()

    def _on_state(self, old: LoopState, new: LoopState) -> None:
        self.robot_hold.changed()
        self.onlookers.notify()

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
