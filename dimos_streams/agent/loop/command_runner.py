"""Carries out what operators have asked of the loop: an abort, perhaps with a rollback, and taking calls back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from dimos_streams import clock
from dimos_streams.agent.calls.call_endings import GRACE_S
from dimos_streams.agent.calls.open_call import OpenCall, listed
from dimos_streams.agent.control.commands import AbortCommand, AbortReport, LoopCommand, UndoCommand
from dimos_streams.agent.control.undo import Undoing, Undone
from dimos_streams.agent.control.undo_log import UndoEntry, UndoLog
from dimos_streams.agent.control.undo_pause import UndoPause
from dimos_streams.agent.loop.intake import Intake
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.states import LoopState, StateMachine
from dimos_streams.agent.missions.message_queue import CallUpdate, QueueItem
from dimos_streams.agent.missions.mission import Mission, ids
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.common.tasks import first_of
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.tool_stream.family import head_of_family
from dimos_streams.tool_stream.gateway import CallView

_logger = logging.getLogger(__name__)


class CommandRunner:
    """Runs one command at a time, in the loop's task; the loop is in no turn then."""

    def __init__(
        self, parts: LoopParts, undo_log: UndoLog, machine: StateMachine, intake: Intake, wake: asyncio.Event
    ) -> None:
        """``wake`` is set when something may have changed."""
        self._parts = parts
        self._undo_log = undo_log
        self._machine = machine
        self._intake = intake
        self._wake = wake
        self._undoing: asyncio.Task[None] | None = None
        self._command: AbortCommand | UndoCommand | None = None
        """The one that is carried out."""

    async def check_undo(self, entries: Sequence[UndoEntry]) -> None:
        """Raise ``SkillError`` if a pause holds other calls that may still run, whoever has begun them, and would go
        on when these are taken back; also if the bridge can't be asked for them."""
        if not (self._parts.oversight.control.paused and self._needs_motion(entries)):
            return
        own, foreign = self._others(entries), await self._other_motions(entries)
        if own or foreign:
            going_on = ", ".join(part for part in (listed(own), *map(_named, foreign)) if part)
            end = "end all with `abort`" if not foreign else "end them: `say stop` ends those of others as well"
            raise SkillError(
                "the agent is paused: the robot has to move to go back, and then"
                f" {going_on} would go on as well; `resume` first, or {end}"
            )

    def hold_again(self, command: LoopCommand[Any]) -> None:
        """Interrupt no pause for a command any more: the call that ordered it has ended, and with it what keeps the
        bridge from beginning motions of others."""
        command.unattended = True
        if command is self._command:
            self._parts.oversight.control.end_interruption("the call that ordered the undo has ended")

    def stop_undoing(self) -> None:
        """Stop undoing, if an undo is under way."""
        if self._undoing is not None:
            self._undoing.cancel()

    async def run(self, command: AbortCommand | UndoCommand) -> None:
        """Carry a command out; all that wait for it are answered, whatever happens."""
        self._command = command
        try:
            if isinstance(command, AbortCommand):
                command.finish(await self._carry_out_abort(command))
            else:
                command.finish(await self._carry_out_undo(command))
        except BaseException:
            command.give_up()
            raise
        finally:
            self._command = None

    async def _carry_out_abort(self, abort: AbortCommand) -> AbortReport:
        self._machine.go(LoopState.SETTLING)
        control, calls, pause = self._parts.oversight.control, self._parts.scope.calls, self._new_pause()
        cancelled = dict.fromkeys((*abort.calls, *calls.known.open))
        hold = await self._settle_and_hold(abort)
        unfinished, was_paused = calls.memory.given_up, control.paused
        if unfinished:
            control.pause("calls that were aborted may still run", ordered=False)
        for task in abort.others:  # more may come meanwhile
            await task
        undone: list[Undone] = []
        if abort.rollback:
            undone = await self._undo(self._undo_log.newest(None, ids(abort.missions)), pause)
        report = AbortReport(
            reason=abort.reason,
            missions=ids(abort.missions),
            cancelled=tuple(call.call_id for call in cancelled),
            unfinished=tuple(call.call_id for call in unfinished),
            stays_paused=was_paused and control.paused,
            undone=tuple(undone),
            held=hold.held,
            not_held=hold.not_held,
        )
        outcome = report.model_dump(mode="json", exclude={"missions"})
        self._parts.transcript.emit(EventKind.ABORT, report.missions, phase="end", **outcome)
        self._close_notices(abort.missions)
        for hear in abort.on_end:
            hear(report)
        return report

    async def _settle_and_hold(self, abort: AbortCommand) -> HoldView:
        """End the calls of an abort; return the answer of the velocity gates, which are asked meanwhile."""
        confirming = asyncio.ensure_future(self._parts.oversight.robot_hold.confirmed())
        try:
            await self._settle(abort)
            return await confirming
        finally:
            confirming.cancel()

    def _new_pause(self) -> UndoPause:
        control, emit = self._parts.oversight.control, self._parts.transcript.emit
        return UndoPause(control, emit, lambda entry: self._needs_motion([entry]))

    async def _pause_interrupted(
        self, entries: Sequence[UndoEntry], pause: UndoPause
    ) -> contextlib.AbstractContextManager[None]:
        """Let a robot that was paused before move while these calls are taken back, unless other calls would go on
        with it. None of others begins then: the bridge sees to that as long as the call that ordered this is open."""
        control = self._parts.oversight.control
        if not control.paused or not self._needs_motion(entries) or await self._may_be_moved(entries):
            return contextlib.nullcontext()
        attended = self._command is not None and not self._command.unattended
        if control.paused and not pause.came_meanwhile and attended and not self._others(entries):
            return control.interrupted("calls are taken back")
        return contextlib.nullcontext()

    async def _may_be_moved(self, entries: Sequence[UndoEntry]) -> bool:
        """Return whether other calls that are open may move the robot, for all that is known."""
        try:
            return bool(await self._other_motions(entries))
        except SkillError as error:
            _logger.warning("a pause is not interrupted, since the open calls are not known: %s", error)
            return True

    async def _other_motions(self, entries: Iterable[UndoEntry]) -> list[CallView]:
        """The open calls besides these, and besides those that the agent knows as its own, that may move the robot.
        Raises ``SkillError``."""
        calls = self._parts.scope.calls
        known = {entry.call_id for entry in entries} | {call.call_id for call in calls.known.may_run}
        views = await self._parts.oversight.others.moving()
        return [view for view in views if head_of_family(view.call_id) not in known]

    def _needs_motion(self, entries: Iterable[UndoEntry]) -> bool:
        """Return whether one of the calls moved the robot, or the skill that takes it back does."""
        catalog = self._parts.toolbox.catalog
        undoable = [entry for entry in entries if entry.reversible and entry.undo in catalog.all]
        return any(catalog.may_move(name) for entry in undoable for name in (entry.skill, entry.undo))

    def _others(self, entries: Iterable[UndoEntry]) -> list[OpenCall]:
        """The calls besides these that may run."""
        calls, own = self._parts.scope.calls, {entry.call_id for entry in entries}
        given_up = calls.memory.given_up
        return [call for call in calls.known.may_run if call.call_id not in own or call in given_up]

    async def _settle(self, abort: AbortCommand) -> None:
        """End all open calls within the bound, also those that turn up meanwhile: late ones have ``GRACE_S``."""
        calls, deadline = self._parts.scope.calls, clock.monotonic() + self._parts.model.limits.abort_bound_s
        reason = f"aborted by the operator{f': {abort.reason}' if abort.reason else ''}"
        while calls.known.open or calls.starts.under_way:
            if calls.known.open:
                bound_s = max(GRACE_S, deadline - clock.monotonic())
                await self._drain_until(abort, calls.endings.end(calls.known.open, reason, bound_s=bound_s))
            else:
                await self._drain_until(abort, calls.starts.next_over())
        self._drain(abort)

    async def _drain_until(self, abort: AbortCommand, step: Coroutine[Any, Any, object]) -> None:
        """Carry out a step of an abort, and record what comes meanwhile."""
        task = asyncio.ensure_future(step)
        try:
            while not task.done():
                self._wake.clear()
                self._drain(abort)
                await first_of(task, self._wake)
        finally:
            task.cancel()
        task.result()

    def _drain(self, abort: AbortCommand) -> None:
        """Record what waits of the aborted missions, so that nobody waits for room in the queue."""
        self._intake.record_where(lambda item: _is_of(item, abort))

    async def _carry_out_undo(self, undo: UndoCommand) -> list[Undone]:
        undone = await self._undo(self._undo_log.newest(undo.count), self._new_pause())
        self._close_notices(())
        return undone

    def _close_notices(self, missions: Sequence[Mission]) -> None:
        """Close the notices of what was done: the model reads them when it is asked next; until then nothing waits
        for an answer."""
        self._parts.transcript.close_unanswered(ids(missions), "[noted]", "noted")

    async def _undo(self, entries: Sequence[UndoEntry], pause: UndoPause) -> list[Undone]:
        """Take calls back; return those that were dealt with, even if it was aborted. Raises whatever else
        ends it: no report has only a part of them."""
        self._machine.go(LoopState.UNDOING)
        limits = self._parts.model.limits
        work = Undoing(
            self._parts.scope.calls,
            self._parts.transcript.emit,
            settle_s=limits.abort_bound_s,
            timeout_s=limits.undo_timeout_s,
            pause=pause,
        )
        self._undoing = asyncio.get_running_loop().create_task(self._take_back(work, entries, pause))
        try:
            await asyncio.wait([self._undoing])
            if not self._undoing.cancelled():
                self._undoing.result()
        finally:
            self._undoing.cancel()
            self._undoing = None
        return work.done

    async def _take_back(self, work: Undoing, entries: Sequence[UndoEntry], pause: UndoPause) -> None:
        await self._parts.toolbox.catalog.refresh(at_once=True)
        await work.end(entries)
        with await self._pause_interrupted(entries, pause):
            await work.undo(entries, self._parts.toolbox.catalog.all)


def _named(view: CallView) -> str:
    return f"{view.skill} (call {view.call_id} of {view.caller!r})"


def _is_of(item: QueueItem, abort: AbortCommand) -> bool:
    """Return whether a waiting item is settled by an abort; what was said since is not."""
    if not item.missions:
        return isinstance(item, CallUpdate)
    return all(mission in abort.missions for mission in item.missions)
