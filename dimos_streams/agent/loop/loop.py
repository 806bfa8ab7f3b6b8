"""The loop: waits for messages, lets the model react to them in turns, and obeys the operator in between."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from dimos_streams import clock
from dimos_streams.agent.calls.open_call import OpenCall, listed
from dimos_streams.agent.control.commands import Abort, AbortReport, Undo
from dimos_streams.agent.control.undo import UndoEntry, Undoing, UndoJournal, Undone
from dimos_streams.agent.loop.intake import Intake
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.states import LoopState, StateMachine
from dimos_streams.agent.loop.turn import INTERRUPTED, Ending, Turn
from dimos_streams.agent.missions.message_queue import CallUpdate, OperatorInput, QueueItem
from dimos_streams.agent.missions.mission import Mission, all_ended, ids, with_parents
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.errors import SkillError

_logger = logging.getLogger(__name__)


class AgentLoop:
    """One task that goes through the states of ``states.TRANSITIONS``; everything else only asks it to.

    All messages that wait when it is idle become one turn; what comes meanwhile waits, and so it does while the
    operator has paused the agent or is in the middle of a sentence. Progress goes into the record and causes no turn.
    """

    def __init__(
        self,
        parts: LoopParts,
        journal: UndoJournal,
        *,
        name: str = "agent",
        on_state: Callable[[LoopState, LoopState], None] = lambda old, new: None,
    ) -> None:
        """``on_state`` hears of each change, with the old and the new state."""
        self.parts = parts
        self.machine = StateMachine(on_state)
        self.missions: dict[str, Mission] = {}
        """Those that are not over, by id."""
        self._journal = journal
        self._name = name
        self._wake = asyncio.Event()
        self._commands: deque[Abort | Undo] = deque()
        self._abort: Abort | None = None
        self._turn: Turn | None = None
        self._undoing: asyncio.Task[None] | None = None
        self._intake = Intake(parts, name)
        self._turns = itertools.count(1)
        self._call_numbers = itertools.count(1)

    @property
    def state(self) -> LoopState:
        """Now."""
        return self.machine.state

    @property
    def turn(self) -> Turn | None:
        """The present one, None between turns."""
        return self._turn

    @property
    def iteration(self) -> int:
        """Of the present turn, 0 between turns."""
        return self._turn.iteration if self._turn else 0

    def wake(self) -> None:
        """Something may have changed: look again."""
        self._wake.set()

    def add(self, mission: Mission) -> None:
        """A mission has begun; ``remove`` it when it is over."""
        self.missions[mission.id] = mission

    def remove(self, mission: Mission) -> None:
        """A mission is over."""
        self.missions.pop(mission.id, None)

    def on_end(self, mission: Mission) -> None:
        """A mission was ended early: its calls are ended, and its turn unless that is others' too."""
        turn = self._turn
        shared = turn is not None and not turn.interruption and not all_ended(turn.missions)
        self.parts.events.emit(EventKind.ENDED, (mission.id,), reason=mission.ended, turn_goes_on=shared)
        self.wake()
        if turn is not None and mission in turn.missions and not shared:
            turn.interrupt(mission.ended)
        self.withdraw(mission)
        if self._abort is None:
            calls = [call for call in self.parts.calls.open if mission in call.missions]
            self.parts.calls.end_soon(calls, _why_ended(mission.ended), bound_s=self.parts.settings.abort_bound_s)

    def withdraw(self, mission: Mission) -> None:
        """Nothing is begun any more that the model has asked for while it still saw an ended mission's words."""
        if self._turn is not None and mission in self._turn.missions:
            self._turn.stale = True
        self.wake()

    def unrecorded_offset(self) -> int | None:
        """The place of the oldest event that is dealt with, and not in the record yet."""
        parts = self.parts
        offsets = (self._intake.oldest_offset(), parts.queue.oldest_offset(), parts.calls.unrecorded_offset())
        return min((offset for offset in offsets if offset is not None), default=None)

    async def run(self) -> None:
        """Until cancelled. Runs once."""
        try:
            while True:
                if self._commands:
                    await self._obey(self._commands.popleft())
                elif len(self.parts.queue) and self.parts.may_begin():
                    await self._take(self.parts.queue.take_nowait())
                elif left := self.parts.queue.take_where(_is_left):
                    self._intake.record(left)
                    _release(left)
                else:
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            self._close()

    async def abort(self, reason: str = "", *, rollback: bool = False) -> AbortReport:
        """``begin_abort`` and wait for its end. Raises ``SkillError`` if the loop is closed."""
        return await asyncio.shield(self.begin_abort(reason, rollback=rollback).done)

    def begin_abort(self, reason: str = "", *, rollback: bool = False) -> Abort:
        """End all missions and their calls, now; with ``rollback`` take back what can be, newest first.

        The model's stream is cut and no call begins any more when this is called, before anything is waited for.
        An abort while one is under way joins it; while calls are taken back, it ends that. Raises ``SkillError`` if
        the loop is closed.
        """
        self._check_open()
        abort = self._abort
        if abort is None or self.state is LoopState.UNDOING:
            abort = Abort(reason, rollback, tuple(self.missions.values()), self.parts.calls.open)
            self._commands.appendleft(abort)
            self._abort = abort
            self.parts.events.emit(
                EventKind.ABORT, ids(abort.missions), phase="start", reason=reason, rollback=rollback
            )
        abort.rollback = abort.rollback or rollback
        abort.missions = tuple(dict.fromkeys((*abort.missions, *self.missions.values())))
        if self._turn is not None:
            self._turn.interrupt("aborted", abort.reason)
        for mission in abort.missions:
            mission.end("aborted", abort.reason)
        if self._undoing is not None:
            self._undoing.cancel()
        self.wake()
        return abort

    def cut(self) -> None:
        """End the present turn, for words that can't wait: the model's stream is cut; calls that run go on."""
        if self._turn is not None:
            self._turn.interrupt(INTERRUPTED)

    async def undo(self, count: int | None = 1) -> list[Undone]:
        """Take back the newest ``count`` calls, or all, newest first.

        Raises ``SkillError`` while there is work, or while a pause holds still what else would go on.
        """
        await self.parts.offers.refresh(at_once=True)
        self._check_open()
        if self.state is not LoopState.IDLE or self._commands:
            raise SkillError(f"the agent is {self.state.value}: abort first, or let it finish")
        entries = self._journal.newest(count)
        if self.parts.control.paused and self._needs_motion(entries) and (others := self._others(entries)):
            raise SkillError(
                "the agent is paused: the robot has to move to go back, and then"
                f" {listed(others)} would go on as well; `resume` first, or end all with `abort`"
            )
        undo = Undo(count)
        self._commands.append(undo)
        self.wake()
        return await asyncio.shield(undo.done)

    async def _take(self, items: Sequence[QueueItem]) -> None:
        """Take messages into the record and, unless all are progress, let the model react to them."""
        missions = tuple({mission.id: mission for item in items for mission in item.missions}.values())
        heard = {item.missions[0] for item in items if _is_new(item)}
        wants_turn = any(item.wants_turn for item in items)
        if any(isinstance(item, OperatorInput) and item.speaker == "operator" for item in items):
            for mission in with_parents(missions):
                mission.guard = None
        try:
            self._intake.record(items)
            if wants_turn:
                await self._run_turn(missions, heard)
        finally:
            _release(items)

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
            for mission in missions:
                mission.end(ending.reason, ending.note or ending.why)
            if not missions:  # nobody's calls: they were there before this agent
                self.parts.calls.end_soon(
                    self.parts.calls.open, ending.reason, bound_s=self.parts.settings.abort_bound_s
                )
        if self._abort is None:
            self.machine.go(LoopState.IDLE)

    async def _until_stopped(self, turn: Turn) -> Ending:
        """Wait for a turn; one that was interrupted gets a bounded time to let go."""
        task, bound_s = turn.start(), self.parts.settings.abort_bound_s
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

    async def _obey(self, command: Abort | Undo) -> None:
        try:
            if isinstance(command, Abort):
                command.finish(await self._carry_out_abort(command))
            else:
                command.finish(await self._carry_out_undo(command))
        except BaseException:
            command.give_up()
            raise
        finally:
            if self._abort is command:
                self._abort = None
            if not self._commands:
                self.machine.go(LoopState.IDLE)

    async def _carry_out_abort(self, abort: Abort) -> AbortReport:
        self.machine.go(LoopState.SETTLING)
        cancelled = dict.fromkeys((*abort.calls, *self.parts.calls.open))
        confirming = asyncio.ensure_future(self.parts.confirm_hold())
        try:
            await self._settle(abort)
            hold = await confirming
        finally:
            confirming.cancel()
        unfinished = self.parts.calls.given_up
        was_paused = self.parts.control.paused
        if unfinished:
            self.parts.control.pause("calls that were aborted may still run")
        undone = await self._roll_back(abort) if abort.rollback else []
        report = AbortReport(
            reason=abort.reason,
            missions=ids(abort.missions),
            cancelled=tuple(call.call_id for call in cancelled),
            unfinished=tuple(call.call_id for call in unfinished),
            stays_paused=was_paused and self.parts.control.paused,
            undone=tuple(undone),
            held=hold.held,
            not_held=hold.not_held,
        )
        told = report.model_dump(mode="json", exclude={"missions"})
        self.parts.events.emit(EventKind.ABORT, report.missions, phase="end", **told)
        self._close_notices(abort.missions)
        for hear in abort.on_end:
            hear(report)
        return report

    async def _roll_back(self, abort: Abort) -> list[Undone]:
        """Take back what the missions did."""
        return await self._undo(self._journal.newest(None, ids(abort.missions)))

    @contextlib.contextmanager
    def _pause_interrupted(self, entries: Sequence[UndoEntry]) -> Iterator[None]:
        """A robot that is held can't go back. Not where anything else would go on with it."""
        control = self.parts.control
        interrupts = control.paused and self._needs_motion(entries) and not self._others(entries)
        if interrupts:
            control.resume()
        try:
            yield
        finally:
            if interrupts:
                control.pause("as before calls were taken back")

    def _needs_motion(self, entries: Iterable[UndoEntry]) -> bool:
        """Whether one of them moved the robot, or what takes it back does."""
        offers = self.parts.offers
        undoable = [entry for entry in entries if entry.reversible and entry.undo in offers.all]
        return any(offers.may_move(name) for entry in undoable for name in (entry.skill, entry.undo))

    def _others(self, entries: Iterable[UndoEntry]) -> list[OpenCall]:
        """Calls besides these that may run."""
        calls, own = self.parts.calls, {entry.call_id for entry in entries}
        return [call for call in (*calls.open, *calls.given_up) if call.call_id not in own or call in calls.given_up]

    async def _settle(self, abort: Abort) -> None:
        """End what is open, for as long as something new turns up, within the bound."""
        deadline = clock.monotonic() + self.parts.settings.abort_bound_s
        reason = f"aborted by the operator{f': {abort.reason}' if abort.reason else ''}"
        while self.parts.calls.open or self.parts.calls.starting:
            ending = asyncio.ensure_future(
                self.parts.calls.end(self.parts.calls.open, reason, bound_s=max(0.0, deadline - clock.monotonic()))
            )
            try:
                while not ending.done():
                    self._wake.clear()
                    self._drain(abort)
                    await first_of(ending, self._wake)
            finally:
                ending.cancel()
            ending.result()
        self._drain(abort)

    def _drain(self, abort: Abort) -> None:
        """Record what waits of the aborted missions, so that nobody waits for room in the queue."""
        items = self.parts.queue.take_where(lambda item: _is_of(item, abort))
        self._intake.record(items)
        _release(items)

    async def _carry_out_undo(self, undo: Undo) -> list[Undone]:
        undone = await self._undo(self._journal.newest(undo.count))
        self._close_notices(())
        return undone

    def _close_notices(self, missions: Sequence[Mission]) -> None:
        """The model reads what was done when it is asked next; until then nothing waits for an answer."""
        if self.parts.conversation.awaits_answer:
            self.parts.events.emit(EventKind.ANSWER, ids(missions), text="[noted]", finish="noted", tool_calls=[])

    async def _undo(self, entries: Sequence[UndoEntry]) -> list[Undone]:
        """Take calls back; what could be done when that was aborted."""
        self.machine.go(LoopState.UNDOING)
        await self.parts.offers.refresh(at_once=True)
        control, settings = self.parts.control, self.parts.settings
        work = Undoing(
            self.parts.calls,
            self.parts.events.emit,
            settle_s=settings.abort_bound_s,
            timeout_s=settings.undo_timeout_s,
            held=lambda entry: control.paused and self._needs_motion([entry]),
        )
        self._undoing = asyncio.get_running_loop().create_task(self._take_back(work, entries))
        try:
            await asyncio.wait([self._undoing])
        finally:
            self._undoing.cancel()
            self._undoing = None
        return work.done

    async def _take_back(self, work: Undoing, entries: Sequence[UndoEntry]) -> None:
        await work.end(entries)
        with self._pause_interrupted(entries):
            await work.undo(entries, self.parts.offers.all)

    def _check_open(self) -> None:
        if self.state is LoopState.CLOSED:
            raise SkillError("the agent is stopping")

    def _close(self) -> None:
        """Nobody is left waiting."""
        self.machine.go(LoopState.CLOSED)
        for command in self._commands:
            command.give_up()
        self._commands.clear()


def _release(items: Sequence[QueueItem]) -> None:
    for item in items:
        for mission in item.missions:
            mission.release()


def _is_of(item: QueueItem, abort: Abort) -> bool:
    """Whether an item is done with when all is aborted; not what was said since."""
    if not item.missions:
        return isinstance(item, CallUpdate)
    return all(mission in abort.missions for mission in item.missions)


def _is_new(item: QueueItem) -> bool:
    """Whether an item has somebody's words that the model will hear."""
    return isinstance(item, OperatorInput) and bool(item.missions) and not item.withdrawn


def _is_left(item: QueueItem) -> bool:
    """Whether an item is only for the record, because its missions were ended: no pause keeps it waiting."""
    return all_ended(item.missions) or (isinstance(item, OperatorInput) and item.withdrawn)


async def first_of(task: asyncio.Future[Any], event: asyncio.Event) -> None:
    """Wait until a task is done or an event is set."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def _why_ended(reason: str) -> str:
    if reason == "cancelled":
        return "the operator has withdrawn what led to this call"
    return f"the mission that led to this call was ended: {reason}"
