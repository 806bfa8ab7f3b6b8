"""Takes back what the agent has done: newest first, past failures, until somebody stops it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dimos_streams import clock
from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.control.reports import How, Undone
from dimos_streams.agent.control.undo_log import UNKNOWN, UndoEntry, may_have_run
from dimos_streams.agent.control.undo_pause import UndoPause
from dimos_streams.agent.missions.end_state import why_ended
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.agent.record.event_data.calls import UndoEnd, UndoStart
from dimos_streams.common.process.internal_error import internal_error
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import (
    CallInDoubtError,
    CallRejectedError,
    SkillArgumentError,
    SkillError,
    SkillUnavailableError,
    UnknownSkillError,
)
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import OfferedSkill

_LOOK_S = 0.5
_logger = logging.getLogger(__name__)


class _End(NamedTuple):
    """The end of taking one call back."""

    how: How
    text: str
    left: bool = False
    """True if nothing was begun, so that the call is still there to be taken back."""
    stopped: bool = False
    """True if somebody has ended what took it back: whoever stops a robot on its way back does not mean that of one
    call only."""


class Undoing:
    """Takes calls back, none of them twice: what was begun and not finished is not begun again."""

    def __init__(
        self,
        calls: CallManager,
        emit: Emit,
        *,
        settle_s: float,
        timeout_s: float,
        pause: UndoPause,
    ) -> None:
        """``settle_s`` is the time for a call that still runs to end, ``timeout_s`` that for each call that takes one
        back, as far as ``pause`` lets it count."""
        self._calls = calls
        self._pause = pause
        self._emit = emit
        self._settle_s = settle_s
        self._timeout_s = timeout_s
        self._running: frozenset[str] = frozenset()
        self._cut_off: frozenset[str] = frozenset()
        """The calls that were ended in order to be taken back."""
        self._not_run: frozenset[str] = frozenset()
        """Those of them that were ended before anything of them ran."""
        self._call: OpenCall | None = None
        """The one that takes back the present entry."""
        self.done: list[Undone] = []
        """The calls that were taken back so far, or could not be."""

    async def end(self, entries: Iterable[UndoEntry]) -> None:
        """End those calls that still run, all at once, before the first of them is taken back."""
        wanted = {entry.call_id for entry in entries}
        ending = [call for call in self._calls.known.open if call.call_id in wanted]
        left = await self._calls.endings.end(ending, "it is undone", bound_s=self._settle_s)
        self._running = frozenset(call.call_id for call in left)
        self._cut_off = frozenset(call.call_id for call in ending) - self._running
        closes = [call.close for call in ending if call.close is not None]
        self._not_run = frozenset(close.call_id for close in closes if not may_have_run(close))

    async def undo(self, entries: Iterable[UndoEntry], skills: Mapping[str, OfferedSkill]) -> None:
        """Take calls back in the order given, after ``end``; if one is stopped, the others are left. ``skills`` are
        those that are offered now."""
        stopped = ""
        for entry in entries:
            if stopped:
                self._note_end(entry, _End("failed", f"{stopped}; `undo` takes it back still", left=True))
                continue
            await self._pause.over()
            doubt = entry.doubt  # as it was before: from now on it counts as begun
            start = UndoStart(phase="start", call_id=entry.call_id, skill=entry.skill)
            self._emit(EventKind.UNDO, entry.missions, start)
            end = _End("failed", doubt) if doubt else await self._take_back(entry, skills)
            self._note_end(entry, end)
            if end.stopped:
                stopped = f"nothing was begun, as taking back call {entry.call_id} was stopped"

    async def _take_back(self, entry: UndoEntry, skills: Mapping[str, OfferedSkill]) -> _End:
        """Take one call back. If this fails, the others can be taken back all the same."""
        try:
            return await self._undo_one(entry, skills)
        except asyncio.CancelledError:
            if self._call is not None and self._call.close is not None:
                self._note_end(entry, _end_of(self._call))
            else:  # the log keeps it as begun, so that it is not begun again
                self._report(entry, _End("failed", f"taking it back was aborted; {UNKNOWN}"))
            raise
        except Exception as error:
            error_id = f"{entry.call_id}-undo"
            _logger.exception("call %s of %s is taken back, %s", entry.call_id, entry.skill, error_id)
            return _End("failed", internal_error(error_id, error))

    def _note_end(self, entry: UndoEntry, end: _End) -> None:
        undone = self._report(entry, end)
        data = UndoEnd(
            phase="end",
            call_id=undone.call_id,
            skill=undone.skill,
            arguments=undone.arguments,
            how=undone.how,
            text=undone.text,
            left=end.left,
        )
        self._emit(EventKind.UNDO, entry.missions, data)

    def _report(self, entry: UndoEntry, end: _End) -> Undone:
        undone = Undone(
            call_id=entry.call_id, skill=entry.skill, arguments=dict(entry.arguments), how=end.how, text=end.text
        )
        self.done.append(undone)
        return undone

    async def _undo_one(self, entry: UndoEntry, skills: Mapping[str, OfferedSkill]) -> _End:
        self._call = None
        if entry.call_id in self._running:
            return _End("failed", "it still runs", left=True)
        if entry.call_id in self._not_run:
            return _End("undone", "it was ended before anything of it ran")
        if not entry.reversible:
            return _End("impossible", "what it did can't be taken back")
        if not entry.undo:
            ended = "it was ended, but " if entry.call_id in self._cut_off else ""
            return _End("impossible", f"{ended}it declares no undo")
        arguments = {"arguments": dict(entry.arguments), "result": entry.result}
        offered = skills.get(entry.undo)
        if self._pause.forbids(entry):
            return _End("failed", "it needs motion, and the robot is held still", left=True)
        if offered is not None and "call_id" in offered.parameters.get("properties", {}):
            arguments["call_id"] = entry.call_id
        try:
            self._call = await self._calls.start(
                entry.undo, arguments, silent=True, stands=lambda: not self._pause.stops_time(entry)
            )
        except SkillError as error:
            return _End("failed", str(error), left=_never_began(error))
        return await self._ended(self._call, entry)

    async def _ended(self, call: OpenCall, entry: UndoEntry) -> _End:
        try:
            await self._closed(call, entry)
        except TimeoutError:
            await self._calls.endings.end([call], "undoing took too long", bound_s=self._settle_s)
            return _End("failed", f"{call.skill} took longer than {self._timeout_s:g} s")
        except BaseException:
            self._calls.endings.end_soon([call], "undoing was aborted", bound_s=self._settle_s)
            raise
        return _end_of(call)

    async def _closed(self, call: OpenCall, entry: UndoEntry) -> None:
        """Wait for a call's close. Raises ``TimeoutError`` if it takes too long."""
        rest_s = self._timeout_s
        while not call.closed.is_set():
            if rest_s <= 0:
                raise TimeoutError
            began, stands_still = clock.monotonic(), self._pause.stops_time(entry)
            await ends_within(min(rest_s, _LOOK_S), call.closed.wait())
            if not stands_still:
                rest_s -= clock.monotonic() - began


def _never_began(error: SkillError) -> bool:
    """Return whether a call that could not be started has certainly not begun."""
    refusals = (CallRejectedError, UnknownSkillError, SkillArgumentError, SkillUnavailableError)
    return isinstance(error, refusals) and not isinstance(error, CallInDoubtError)


def _end_of(call: OpenCall) -> _End:
    close = call.close
    if close is None:
        return _End("failed", f"it vanished; {UNKNOWN}")
    if close.outcome is Outcome.REJECTED:
        return _End("failed", f"{close.text}; nothing was begun, so `undo` takes it back still", left=True)
    how: How = "undone" if close.outcome is Outcome.COMPLETED else "failed"
    text = f"{close.text}; {UNKNOWN}" if close.outcome is Outcome.LOST else close.text
    return _End(how, text, stopped=why_ended(close) is not None)
