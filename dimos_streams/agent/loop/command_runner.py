"""Carries out what operators have asked of the loop: an abort, perhaps with a rollback, and taking calls back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from dimos_streams.agent.calls.open_call import listed
from dimos_streams.agent.control.commands import AbortCommand, LoopCommand, UndoCommand
from dimos_streams.agent.control.reports import AbortReport, Undone
from dimos_streams.agent.control.undo import Undoing
from dimos_streams.agent.control.undo_log import UndoEntry, UndoLog
from dimos_streams.agent.control.undo_pause import UndoPause
from dimos_streams.agent.loop.intake import Intake
from dimos_streams.agent.loop.moving_calls import MovingCalls
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.loop.settling import Settling
from dimos_streams.agent.loop.states import LoopState, StateMachine
from dimos_streams.agent.missions.mission import Mission, ids
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.operators import AbortEnd
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.tool_stream.gateway import CallView


class CommandRunner:
    """Runs one command at a time, in the loop's task; the loop is in no turn then."""

    def __init__(
        self, parts: LoopParts, undo_log: UndoLog, machine: StateMachine, intake: Intake, wake: asyncio.Event
    ) -> None:
        """``wake`` is set when something may have changed."""
        self._transcript, self._model = parts.transcript, parts.model
        self._calls, self._catalog = parts.scope.calls, parts.toolbox.catalog
        self._control, self._robot_hold = parts.oversight.control, parts.oversight.robot_hold
        self._undo_log = undo_log
        self._machine = machine
        self._settling = Settling(self._calls, intake, self._model, wake)
        self._moving = MovingCalls(self._calls, self._catalog, parts.oversight.others)
        self._undoing: asyncio.Task[None] | None = None
        self._command: AbortCommand | UndoCommand | None = None
        """The one that is carried out."""

    async def check_undo(self, entries: Sequence[UndoEntry]) -> None:
        """Raise ``SkillError`` if a pause holds other calls that may still run, whoever has begun them, and would go
        on when these are taken back; also if the bridge can't be asked for them."""
        if not (self._control.paused and self._moving.needed_by(entries)):
            return
        own, foreign = self._moving.own_besides(entries), await self._moving.foreign_besides(entries)
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
            self._control.end_interruption("the call that ordered the undo has ended")

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
        control, calls, pause = self._control, self._calls, self._new_pause()
        cancelled = dict.fromkeys((*abort.calls, *calls.known.open))
        hold = await self._settle_and_hold(abort)
        unfinished, was_paused = calls.memory.given_up, control.paused
        if unfinished:
            control.pause("calls that were aborted may still run", ordered=False)
        for task in abort.others:  # more may come meanwhile
            await task
        undone = await self._roll_back(abort, pause) if abort.rollback else []
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
        self._transcript.emit(EventKind.ABORT, report.missions, _event_of(report))
        self._close_notices(abort.missions)
        for hear in abort.on_end:
            hear(report)
        return report

    async def _settle_and_hold(self, abort: AbortCommand) -> HoldView:
        """End the calls of an abort; return the answer of the velocity gates, which are asked meanwhile."""
        confirming = asyncio.ensure_future(self._robot_hold.confirmed())
        try:
            await self._settling.run(abort)
            return await confirming
        finally:
            confirming.cancel()

    def _new_pause(self) -> UndoPause:
        return UndoPause(self._control, self._transcript.emit, lambda entry: self._moving.needed_by([entry]))

    async def _pause_interrupted(
        self, entries: Sequence[UndoEntry], pause: UndoPause
    ) -> contextlib.AbstractContextManager[None]:
        """Let a robot that was paused before move while these calls are taken back, unless other calls would go on
        with it. None of others begins then: the bridge sees to that as long as the call that ordered this is open."""
        control, moving = self._control, self._moving
        if not control.paused or not moving.needed_by(entries) or await moving.may_be_foreign_besides(entries):
            return contextlib.nullcontext()
        attended = self._command is not None and not self._command.unattended
        if control.paused and not pause.came_meanwhile and attended and not moving.own_besides(entries):
            return control.interrupted("calls are taken back")
        return contextlib.nullcontext()

    async def _roll_back(self, abort: AbortCommand, pause: UndoPause) -> list[Undone]:
        return await self._undo(self._undo_log.newest(None, ids(abort.missions)), pause)

    async def _carry_out_undo(self, undo: UndoCommand) -> list[Undone]:
        undone = await self._undo(self._undo_log.newest(undo.count), self._new_pause())
        self._close_notices(())
        return undone

    def _close_notices(self, missions: Sequence[Mission]) -> None:
        """Close the notices of what was done: the model reads them when it is asked next; until then nothing waits
        for an answer."""
        self._transcript.close_unanswered(ids(missions), "[noted]", "noted")

    async def _undo(self, entries: Sequence[UndoEntry], pause: UndoPause) -> list[Undone]:
        """Take calls back; return those that were dealt with, even if it was aborted. Raises whatever else
        ends it: no report has only a part of them."""
        self._machine.go(LoopState.UNDOING)
        limits = self._model.limits
        work = Undoing(
            self._calls,
            self._transcript.emit,
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
        await self._catalog.refresh(at_once=True)
        await work.end(entries)
        with await self._pause_interrupted(entries, pause):
            await work.undo(entries, self._catalog.all)


def _event_of(report: AbortReport) -> AbortEnd:
    return AbortEnd(
        phase="end",
        held=list(report.held),
        not_held=[gate.model_dump(mode="json") for gate in report.not_held],
        reason=report.reason,
        cancelled=list(report.cancelled),
        unfinished=list(report.unfinished),
        stays_paused=report.stays_paused,
        undone=[each.model_dump(mode="json") for each in report.undone],
    )


def _named(view: CallView) -> str:
    return f"{view.skill} (call {view.call_id} of {view.caller!r})"
