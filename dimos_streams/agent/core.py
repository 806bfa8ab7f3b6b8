"""An agent without the module around it: its parts put together."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from dimos_streams import clock
from dimos_streams.agent.assembly import check_step, loop_parts, own_tools
from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.event_reader import EventReader
from dimos_streams.agent.calls.open_call import listed
from dimos_streams.agent.calls.skill_catalog import Offers
from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.context.images import Pictures
from dimos_streams.agent.context.results import ResultStore
from dimos_streams.agent.control.console_watch import ConsoleWatch
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.control.dialogue import Foreground
from dimos_streams.agent.control.others_calls import OthersCalls
from dimos_streams.agent.control.robot_hold import RobotHold
from dimos_streams.agent.control.stop_words import StopWords
from dimos_streams.agent.hold_reasons import HoldReasons, hold_for_given_up
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.reviews import Reviews
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.memory import AgentMemory
from dimos_streams.agent.missions.boot_time import since_boot
from dimos_streams.agent.missions.message_queue import MessageQueue, OperatorInput
from dimos_streams.agent.missions.mission import Mission, ids, roots
from dimos_streams.agent.missions.stop_conditions import RobotState
from dimos_streams.agent.model_factory import ModelFactory
from dimos_streams.agent.models.offline_grammar import robots_of
from dimos_streams.agent.open_missions import OpenMissions
from dimos_streams.agent.policies.gates.books import GateBooks
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.resumption.state import Resumption
from dimos_streams.agent.resumption.unfinished import spent_of
from dimos_streams.agent.retry_watch import RetryWatch
from dimos_streams.agent.skill_watch import SkillWatch
from dimos_streams.agent.subagents.delegation import Delegation
from dimos_streams.agent.subagents.sub_mission import of_sub_agent
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.operator.messages.agent import AgentEvent, Usage
from dimos_streams.tool_stream.gateway import SkillGateway
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory

_SHOWN_INPUT = 100


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
        record_dir: Path | None = None,
        run_dir: Path | None = None,
        robot: Callable[[], RobotState] = RobotState,
        directory: ModuleDirectory | None = None,
        resumption: Resumption | None = None,
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
        self.memory = AgentMemory(config, name, record_dir, self._settled_offset, resumption)
        self.events, self.record, self.conversation = self.memory.events, self.memory.record, self.memory.conversation
        self._make_control(directory)
        self._make_means(rng, run_dir)
        self._listen()
        self._make_loop_and_missions(on_warnings)

    def _make_control(self, directory: ModuleDirectory | None) -> None:
        """Make the parts that decide: the operator's hand, permissions, the hold on the robot."""
        config, emit = self.config, self.events.emit
        self.stop_words = StopWords(config.stop_words)
        self.control = Control(emit, self._on_control)
        self.offers = Offers(self.gateway, module=self.name, on_refresh=lambda: self.skill_watch.look())
        self.books = GateBooks(
            config,
            emit,
            lambda skill, arguments: check_step(self.offers, self.books.allowed, skill, arguments),
            agent=self.name,
            offerings=self.offers.offerings,
            input=self._input_of,
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
            on_change=self.changed,
            directory=directory,
            bound_s=config.limits.hold_bound_s,
        )

    def _make_means(self, rng: random.Random, run_dir: Path | None) -> None:
        """Make what it works with: calls, results, models, sub-agents."""
        config = self.config
        # The moment is in the keys so that a restarted agent does not repeat the ones it used before.
        key_prefix = f"{self.name}/{clock.utime():x}"
        self.calls = CallManager(
            self.gateway,
            self.name,
            self.queue.put,
            key_prefix=key_prefix,
            on_given_up=partial(hold_for_given_up, self.control, self.offers, self.robot_hold, self.events.emit),
            on_end=self.books.approvals.call_ended,
        )
        self.results = ResultStore(config.results.store_bytes)
        self.pictures = Pictures(run_dir)
        self.retry_watch = RetryWatch()
        self.models = ModelFactory(
            config,
            self.events.emit,
            rng=rng,
            lessons=self.resumption.lessons if self.resumption else {},
            missions=lambda: ids(self.loop.turn.missions) if self.loop.turn else (),
        )
        self.delegation = Delegation(
            config.agents,
            name=self.name,
            make_loop=self._make_loop,
            make_model=self.models.in_use,
            tools_for=partial(own_tools, self),
        )
        self.model = self.models.in_use(config.model)

    def _make_loop_and_missions(self, on_warnings: Callable[[], None]) -> None:
        self.loop = AgentLoop(loop_parts(self), self.memory.undo_log, name=self.name, on_state=self._on_state)
        parts, name = self.loop.parts, self.name
        self.others = OthersCalls(name, self.gateway, self.offers, self.control, lambda: parts.limits.abort_bound_s)
        self.skill_watch = SkillWatch(self.config, name, parts, on_change=on_warnings)
        self.reviews = Reviews(self.calls, self.events, self._parts_of, self.books.approvals.call_begun)
        self._watchers: dict[asyncio.Event, None] = {}
        self.spent = Usage()
        """The usage of this process."""
        self.reader: EventReader | None = None
        self.missions = OpenMissions(self.loop, self.delegation)

    @property
    def holding(self) -> bool:
        """True if the robot has to be still."""
        return bool(self.hold_reasons.why())

    @property
    def withheld(self) -> tuple[str, ...]:
        """Skills near the agent that its config does not give it."""
        return tuple(name for name, skill in self.offers.offered.items() if not self.books.allowed.allowed(skill))

    def begin(
        self, id: str, input: str, *, on_over: Callable[[], None] = lambda: None, is_done: bool = False
    ) -> Mission:
        """Begin a mission; it lasts until nothing of it is left to do. If it ``is_done`` already, a restarted agent
        does not resume it."""
        mission = self.missions.open(id, input, on_over)
        self.missions.limit(mission)
        done = {"is_done": True} if is_done else {}
        self.events.emit(EventKind.MISSION_START, (id,), id=id, text=input, **since_boot(), **done)
        return mission

    async def hear(self, input: OperatorInput) -> None:
        """Give the operator's input to a dialogue, to a sub-agent at work, or to the agent's queue.

        Input that can't wait answers no dialogue: it cuts the turn that holds it.
        """
        if input.now:
            if not self.delegation.hear(input):
                self.loop.cut()
                self.queue.put_nowait(input)
        elif not self.foreground.take_input(input) and not self.delegation.hear(input):
            await self.queue.put(input)

    def is_stop(self, text: str) -> bool:
        """Return whether an operator's input ends everything at once."""
        own = self.name.split("/")
        return self.stop_words.match(text, ["robot", *own, *robots_of(self.offers.offered)])

    def use_model(self, spec: str) -> None:
        """Ask another model from the next answer on, also in sub-agents that have none of their own. Raises
        ``UserError`` if it can't be made. ``close_replaced`` closes the one before."""
        was = self.model.name
        self.model.replace(self.models.in_use(spec))
        self.events.emit(EventKind.MODEL_SWITCH, (), model=spec, was=was)

    async def close_replaced(self) -> None:
        """Close the models that are not asked any more. While a turn may still hear one of them, none is closed."""
        if self.loop.turn is None:
            await self.model.close_replaced()

    def forget(self) -> None:
        """Begin a new conversation; a turn in progress keeps its messages, and the record stays complete."""
        self.events.emit(EventKind.FORGOTTEN, (), text="The operator has begun a new conversation")

    async def run(self, offset: int) -> None:
        """Read events from an offset on and run the loop, until cancelled."""
        self.reader = EventReader(self.gateway, self.name, self.calls, offset=offset)
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
        unended = [call for call in self.calls.open if call.asked_to_end and self.offers.may_move(call.skill)]
        if unended:
            self.control.pause(f"{listed(unended)} may still run, and the agent stopped while waiting for the end")

    def _listen(self) -> None:
        """Listen to the agent's events, so that whatever is to outlive the process is written before anybody hears of
        it."""
        if self.resumption is not None:
            self.memory.restore(self.resumption.events)
            for event in self.resumption.events:
                self.books.rejections.apply(event)
                self.books.free_motions.restore(event)
            self.resumption.events.clear()  # they may be many, and are of no more use
        self.memory.listen()
        self.events.listen(self._on_event)

    def _parts_of(self, missions: tuple[Mission, ...]) -> LoopParts:
        """The parts of the loop that works on these missions."""
        return self.delegation.parts_of(missions) or self.loop.parts

    def _make_loop(self, parts: LoopParts, name: str) -> AgentLoop:
        return AgentLoop(parts, self.memory.undo_log, name=f"{self.name}/{name}")

    def _input_of(self, missions: Sequence[str]) -> str:
        """The input with which missions, or those that they are part of, began; shortened."""
        known = [self.loop.missions[root] for root in roots(missions) if root in self.loop.missions]
        return "; ".join(mission.input for mission in known)[:_SHOWN_INPUT]

    def _on_event(self, event: AgentEvent) -> None:
        self.memory.apply(event)
        self.books.rejections.apply(event)
        self.books.approvals.apply(event)
        self.retry_watch.apply(event)
        if not of_sub_agent(event):
            self.books.plans.apply(event)
        if event.kind == EventKind.USAGE:
            self.spent += spent_of(event)
        self.changed()

    def watch(self, changed: asyncio.Event) -> Callable[[], None]:
        """Set an event whenever something that operators see may have changed. Return a function that ends that."""
        self._watchers[changed] = None
        return partial(self._watchers.pop, changed, None)

    def changed(self) -> None:
        """Tell watchers that something that operators see may have changed."""
        for changed in self._watchers:
            changed.set()

    def _on_control(self) -> None:
        self._wake()
        self.robot_hold.changed()
        self.changed()

    def _on_state(self, old: LoopState, new: LoopState) -> None:
        self.robot_hold.changed()
        self.changed()

    def _wake(self) -> None:
        self.loop.wake()
        self.delegation.wake()

    def _settled_offset(self) -> int:
        """The offset in the journal up to which everything is in the record."""
        offsets = (self.loop.unrecorded_offset(), self.delegation.unrecorded_offset())
        oldest = min((offset for offset in offsets if offset is not None), default=None)
        if oldest is not None:
            return oldest - 1
        if self.reader is not None:
            return self.reader.offset
        return self.resumption.offset if self.resumption is not None else 0

    def _abort_unwatched(self, why: str) -> None:
        if self.loop.missions and self.loop.state is not LoopState.CLOSED:
            self.loop.begin_abort(why)
