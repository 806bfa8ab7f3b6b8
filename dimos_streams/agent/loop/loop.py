"""The loop: waits for messages, lets the model react to them in turns, and obeys the operator in between."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Collection, Iterable, Sequence

from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.control.commands import AbortCommand, EndOthers, LoopCommand, R, UndoCommand
from dimos_streams.agent.control.reports import AbortReport, Undone
from dimos_streams.agent.control.undo_log import UndoLog
from dimos_streams.agent.loop.command_runner import CommandRunner
from dimos_streams.agent.loop.intake import Intake, release
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.states import LoopState, StateMachine
from dimos_streams.agent.loop.turns.ending import INTERRUPTED, Ending
from dimos_streams.agent.loop.turns.turn import Turn
from dimos_streams.agent.missions.message_queue import OperatorInput, QueueItem, has_new_input, is_over
from dimos_streams.agent.missions.mission import Mission, all_ended, ids
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.operators import AbortStart
from dimos_streams.common.tasks import first_of
from dimos_streams.errors import SkillError

_logger = logging.getLogger(__name__)


class AgentLoop:
    """One task that goes through the states of ``states.TRANSITIONS``; everything else only asks it to.

    All messages that wait when it is idle become one turn; messages that come meanwhile wait, as all do while the
    operator has paused the agent or is in the middle of a sentence. Progress goes into the record and causes no turn.
    """

    def __init__(
        self,
        parts: LoopParts,
        undo_log: UndoLog,
        machine: StateMachine,
        missions: dict[str, Mission],
        *,
        name: str,
    ) -> None:
        """``machine`` and ``missions``, which is empty yet, are the loop's own; others may look at them."""
        self.parts = parts
        self._calls = parts.scope.calls
        parts.queue.on_arrival = self.wake
        self.machine = machine
        self.missions = missions
        """The missions that are not over, by id."""
        self._undo_log = undo_log
        self._name = name
        self._wake = asyncio.Event()
        self._commands: deque[AbortCommand | UndoCommand] = deque()
        self._abort: AbortCommand | None = None
        self._turn: Turn | None = None
        self._intake = Intake(parts.queue, parts.transcript, self._calls)
        self._runner = CommandRunner(parts, undo_log, self.machine, self._intake, self._wake)
        self._turns = itertools.count(1)
        self._call_numbers = itertools.count(1)

    @property
    def state(self) -> LoopState:
        """The state that the loop is in."""
        return self.machine.state

    @property
    def turn(self) -> Turn | None:
        """The present turn, or None between turns."""
        return self._turn

    @property
    def iteration(self) -> int:
        """The number of the present turn's iteration, or 0 between turns."""
        return self._turn.iteration if self._turn else 0

    def wake(self) -> None:
        """Look again, because something may have changed."""
        self._wake.set()

    def add_mission(self, mission: Mission) -> None:
        """Add a mission that has begun; ``remove_mission`` it when it is over."""
        self.missions[mission.id] = mission

    def remove_mission(self, mission: Mission) -> None:
        """Remove a mission that is over."""
        self.missions.pop(mission.id, None)

    def on_end(self, mission: Mission) -> None:
        """End the calls of a mission that was ended early, and its turn unless that is also that of others."""
        turn = self._turn
        shared = turn is not None and not turn.interruption and not all_ended(turn.missions)
        self.parts.transcript.emit(EventKind.ENDED, (mission.id,), reason=mission.ended, turn_goes_on=shared)
        self.wake()
        if turn is not None and mission in turn.missions and not shared:
            turn.interrupt(mission.ended)
        self.withdraw(mission)
        if self._abort is None:
            calls = [call for call in self._calls.known.open if mission in call.missions]
            self._end_soon(calls, _why_ended(mission.ended))

    def withdraw(self, mission: Mission) -> None:
        """Begin nothing any more that the model has asked for while it still saw an ended mission's input."""
        if self._turn is not None and mission in self._turn.missions:
            self._turn.stale = True
        self.wake()

    def unrecorded_offset(self) -> int | None:
        """The offset of the oldest event that is dealt with and not in the record yet, or None if there is none."""
        return self._intake.unrecorded_offset()

    async def run(self) -> None:
        """Run the loop until cancelled. It runs only once."""
        try:
            while True:
                if self._commands:
                    await self._obey(self._commands.popleft())
                elif len(self.parts.queue) and self.parts.oversight.may_begin_turn():
                    await self._take_messages(self.parts.queue.take_nowait())
                elif not self._intake.record_where(is_over):
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            self.close()

    async def abort(self, reason: str = "", *, rollback: bool = False) -> AbortReport:
        """Call ``begin_abort`` and wait for its end. Raises ``SkillError`` if the loop is closed."""
        return await self._answered(self.begin_abort(reason, rollback=rollback))

    def begin_abort(
        self, reason: str = "", *, rollback: bool = False, others: EndOthers | None = None
    ) -> AbortCommand:
        """End all missions and their calls, now; with ``rollback`` take back what can be, newest first. ``others``
        is to end others' calls as well: the abort is not over before, so that a successor goes on with that, too.

        The model's stream is cut and no call begins any more when this is called, before anything is waited for. An
        abort while one is under way joins it; while calls are taken back, it ends that. Raises ``SkillError`` if the
        loop is closed.
        """
        self._check_open()
        under_way = None if self.state is LoopState.UNDOING else self._abort
        abort = under_way or self._order_abort(reason, rollback)
        # An operator who ends everybody's calls wants the robot to stand: it does not go back for an earlier order.
        abort.rollback = rollback or (abort.rollback and others is None)
        if under_way is None or others is not None:  # each stop has a number that others are told
            start = AbortStart(phase="start", reason=reason, rollback=abort.rollback, others=others is not None)
            if others is not None:
                start["said_stop"] = self.parts.oversight.robot_stops.said
            self.parts.transcript.emit(EventKind.ABORT, ids(abort.missions), start)
        if others is not None:
            abort.end_others(others)
        abort.missions = tuple(dict.fromkeys((*abort.missions, *self.missions.values())))
        self._end_work(abort)
        return abort

    def _order_abort(self, reason: str, rollback: bool) -> AbortCommand:
        """Return a new abort, which is carried out before all other commands."""
        self._abort = AbortCommand(reason, rollback, tuple(self.missions.values()), self._calls.known.open)
        self._commands.appendleft(self._abort)
        return self._abort

    def _end_work(self, abort: AbortCommand) -> None:
        """End what an abort can end at once: the turn, the missions, and what is being taken back."""
        if self._turn is not None:
            self._turn.interrupt("aborted", abort.reason)
        for mission in abort.missions:
            mission.end("aborted", abort.reason)
        self._stop_undoing()
        self.wake()

    def _stop_undoing(self) -> None:
        """Take nothing back any more, neither what is under way nor what waits to be."""
        self._runner.stop_undoing()
        for command in [each for each in self._commands if isinstance(each, UndoCommand)]:
            self._commands.remove(command)
            command.finish([])

    def cut(self) -> None:
        """End the present turn, for input that can't wait: the model's stream is cut; calls that run go on."""
        if self._turn is not None:
            self._turn.interrupt(INTERRUPTED)

    async def undo(self, count: int | None = 1) -> list[Undone]:
        """Take back the newest ``count`` calls, or all if it is None, newest first.

        Raises ``SkillError`` while there is work, while a pause holds other calls still that would go on, or if it is
        aborted before it has begun.
        """
        await self.parts.toolbox.catalog.refresh(at_once=True)
        self._check_idle()
        await self._runner.check_undo(self._undo_log.newest(count))
        self._check_idle()
        undo = UndoCommand(count)
        self._commands.append(undo)
        self.wake()
        undone = await self._answered(undo)
        if not undone and self._undo_log.newest(count):
            raise SkillError("the undo was aborted before it took anything back; `undo` takes it back still")
        return undone

    async def _answered(self, command: LoopCommand[R]) -> R:
        """Wait for a command's end, which comes also if nobody waits any more; but then it interrupts no pause."""
        try:
            return await asyncio.shield(command.done)
        except asyncio.CancelledError:
            self._runner.hold_again(command)
            raise

    async def _obey(self, command: AbortCommand | UndoCommand) -> None:
        try:
            await self._runner.run(command)
        finally:
            if self._abort is command:
                self._abort = None
            if not self._commands:
                self.machine.go(LoopState.IDLE)

    async def _take_messages(self, items: Sequence[QueueItem]) -> None:
        """Take messages into the record and, unless all are progress, let the model react to them."""
        missions = tuple({mission.id: mission for item in items for mission in item.missions}.values())
        heard = {item.missions[0] for item in items if has_new_input(item)}
        wants_turn = any(item.wants_turn for item in items)
        if any(isinstance(item, OperatorInput) and item.speaker == "operator" for item in items):
            self.parts.stop_policy.guards.begin_anew(missions)
        try:
            self._intake.record(items)
            if wants_turn:
                await self._run_turn(missions, heard)
        finally:
            release(items)

    async def _run_turn(self, missions: tuple[Mission, ...], heard: Collection[Mission]) -> None:
        turn_id = f"{self._name}-{next(self._turns)}"
        self._turn = turn = Turn(turn_id, self.parts, self.machine, missions, self._call_numbers, heard)
        ending = Ending("closed")
        try:
            ending = await self._until_stopped(turn)
        finally:
            turn.finish(ending)
            self._turn = None
        if ending.ends_missions:
            outer = () if ending.outermost is None else (ending.outermost,)
            for mission in (*outer, *missions):
                mission.end(ending.reason, ending.note or ending.why)
            if not missions:  # nobody's calls: they were there before this agent
                self._end_soon([call for call in self._calls.known.open if not call.missions], ending.reason)
        if self._abort is None:
            self.machine.go(LoopState.IDLE)

    async def _until_stopped(self, turn: Turn) -> Ending:
        """Wait for a turn to end; one that was interrupted gets a bounded time to let go."""
        task, bound_s = turn.start(), self.parts.model.limits.abort_bound_s
        try:
            await first_of(task, turn.interrupted)
        except asyncio.CancelledError:
            turn.interrupt("closed")
            await asyncio.wait([task], timeout=bound_s)
            raise
        if not turn.interruption:
            return task.result()
        await asyncio.wait([task], timeout=bound_s)
        if not task.done():
            _logger.error("turn %s did not end within %g s of its interruption", turn.id, bound_s)
        return Ending(turn.interruption, why=turn.why_interrupted)

    def _end_soon(self, calls: Iterable[OpenCall], reason: str) -> None:
        self._calls.endings.end_soon(calls, reason, bound_s=self.parts.model.limits.abort_bound_s)

    def _check_idle(self) -> None:
        self._check_open()
        if self.state is not LoopState.IDLE or self._commands:
            raise SkillError(f"the agent is {self.state.value}: abort first, or let it finish")

    def _check_open(self) -> None:
        if self.state is LoopState.CLOSED:
            raise SkillError("the agent is stopping")

    def close(self) -> None:
        """Close the loop, whether it has run or not, so that nobody is left waiting. Twice is fine."""
        if self.state is not LoopState.CLOSED:
            self.machine.go(LoopState.CLOSED)
        for command in self._commands:
            command.give_up()
        self._commands.clear()


def _why_ended(reason: str) -> str:
    if reason == "cancelled":
        return "the operator has withdrawn what led to this call"
    return f"the mission that led to this call was ended: {reason}"
