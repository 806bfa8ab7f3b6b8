"""Takes back what the agent has done: newest first, past failures."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from dimos_streams import clock
from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.record.agent_events import Emit, EventKind, tool_event_of
from dimos_streams.common.process.internal_error import internal_error
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.errors import (
    CallInDoubtError,
    CallRejectedError,
    SkillArgumentError,
    SkillError,
    SkillUnavailableError,
    UnknownSkillError,
)
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.operator.messages.kept_report import KeptReport
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import OfferedSkill

_CAPACITY = 200
_LOOK_S = 0.5
_UNKNOWN = "it is not known how far that came"
_logger = logging.getLogger(__name__)
_How: TypeAlias = Literal["undone", "failed", "impossible"]


@dataclasses.dataclass(slots=True, kw_only=True)
class UndoEntry:
    """A call that was begun, with what is needed to take it back."""

    call_id: str
    skill: str
    arguments: Mapping[str, Any]
    undo: str = ""
    """The skill that takes it back; empty if there is none."""
    reversible: bool = True
    missions: tuple[str, ...] = ()
    result: Any = None
    begun: bool = False
    """True if taking it back was begun."""
    unclear: bool = False
    """True if that was begun in a process that died, so that nobody knows how far it came."""

    @property
    def doubt(self) -> str:
        """The reason why it is not known how far taking it back has come, so that it is not begun again; or empty."""
        if not self.begun:
            return ""
        how = "the agent was restarted while it was taken back" if self.unclear else "taking it back was aborted"
        return f"{how}; {_UNKNOWN}"


class Undone(FrozenModel):
    """The end of one call that was to be taken back."""

    call_id: str
    skill: str
    arguments: dict[str, Any]
    how: _How
    text: str
    """The text of the undoing skill, or why the call can't be undone."""

    def __str__(self) -> str:
        return f"{self.skill} (call {self.call_id}): {self.how}: {self.text}"


class UndoReport(KeptReport):
    """The report of an undo."""

    asked: int
    """The number of calls that were to be taken back."""
    found: int
    """The number of those that there were, ``asked`` at most."""
    undone: tuple[Undone, ...]
    """The calls that were taken back or could not be, newest first."""

    def __str__(self) -> str:
        count = sum(each.how == "undone" for each in self.undone)
        number = f"{count} of {self.asked} undone" if self.asked > 1 else ""
        more = "else " if self.found else ""
        all_there = "" if self.found == self.asked else f"there is nothing {more}of the agent's to take back"
        summary = "; ".join(part for part in (number, all_there) if part)
        return self.with_unkept("\n".join(part for part in (*map(str, self.undone), summary) if part))


class UndoLog:
    """The newest ``_CAPACITY`` calls that have changed the world; made of the agent's events, so it outlives the
    agent."""

    def __init__(self) -> None:
        self._entries: deque[UndoEntry] = deque(maxlen=_CAPACITY)

    @property
    def entries(self) -> tuple[UndoEntry, ...]:
        """The calls, oldest first."""
        return tuple(self._entries)

    def apply(self, event: AgentEvent) -> None:
        """Take in what an event says of calls."""
        data = event.data
        if event.kind == EventKind.CALL_OPEN and not data.get("senses"):
            self._entries.append(
                UndoEntry(
                    call_id=data["call_id"],
                    skill=data["skill"],
                    arguments=data["arguments"],
                    undo=data.get("undo", ""),
                    reversible=data.get("reversible", True),
                    missions=event.missions,
                )
            )
        elif event.kind == EventKind.UNDO and data.get("phase") == "end" and not data.get("left"):
            self._remove(data["call_id"])
        elif event.kind == EventKind.UNDO:
            for entry in self._entries:
                if entry.call_id == data["call_id"]:
                    entry.begun = data.get("phase") == "start"
        elif event.kind in (EventKind.UPDATE, EventKind.RESULT):
            self._note_result(tool_event_of(event))

    def restarted(self) -> None:
        """Note that all so far was done by a process that died."""
        for entry in self._entries:
            entry.unclear = entry.begun

    def newest(self, count: int | None, missions: Iterable[str] | None = None) -> list[UndoEntry]:
        """The newest ``count`` calls, or all if it is None, newest first; with ``missions``, only calls of these."""
        wanted = None if missions is None else set(missions)
        found = [entry for entry in reversed(self._entries) if wanted is None or wanted & set(entry.missions)]
        return found[:count]

    def _note_result(self, event: ToolEvent | None) -> None:
        if event is None or event.type != "close":
            return
        for entry in reversed(self._entries):
            if entry.call_id == event.call_id:
                entry.result = event.data.get("result")
                return

    def _remove(self, call_id: str) -> None:
        for entry in self._entries:
            if entry.call_id == call_id:
                self._entries.remove(entry)
                return


class _NotBegun(Exception):
    """Raised if nothing was begun to take a call back, so that it can be taken back later."""


class Undoing:
    """Takes calls back, none of them twice: what was begun and not finished is not begun again."""

    def __init__(
        self,
        calls: CallManager,
        emit: Emit,
        *,
        settle_s: float,
        timeout_s: float,
        held: Callable[[UndoEntry], bool] = lambda entry: False,
    ) -> None:
        """``settle_s`` is the time for a call that still runs to end, ``timeout_s`` that for each call that takes one
        back. ``held`` returns whether the robot is held still though it has to move to take a call back: that does
        not begin then, and the time of what has begun stands still."""
        self._calls = calls
        self._held = held
        self._emit = emit
        self._settle_s = settle_s
        self._timeout_s = timeout_s
        self._running: frozenset[str] = frozenset()
        self._cut_off: frozenset[str] = frozenset()
        """The calls that were ended in order to be taken back."""
        self._call: OpenCall | None = None
        """The one that takes back the present entry."""
        self.done: list[Undone] = []
        """The calls that were taken back so far, or could not be."""

    async def end(self, entries: Iterable[UndoEntry]) -> None:
        """End those calls that still run, all at once, before the first of them is taken back."""
        wanted = {entry.call_id for entry in entries}
        ending = [call for call in self._calls.open if call.call_id in wanted]
        left = await self._calls.endings.end(ending, "it is undone", bound_s=self._settle_s)
        self._running = frozenset(call.call_id for call in left)
        self._cut_off = frozenset(call.call_id for call in ending) - self._running

    async def undo(self, entries: Iterable[UndoEntry], skills: Mapping[str, OfferedSkill]) -> None:
        """Take calls back in the order given, after ``end``. ``skills`` are those that are offered now."""
        for entry in entries:
            doubt = entry.doubt
            self._emit(EventKind.UNDO, entry.missions, phase="start", call_id=entry.call_id, skill=entry.skill)
            if doubt:
                self._note_end(entry, "failed", doubt)
                continue
            try:
                how, text = await self._undo_one(entry, skills)
            except _NotBegun as why:
                self._note_end(entry, "failed", str(why), left=True)
            except asyncio.CancelledError:
                if self._call is not None and self._call.close is not None:
                    self._note_end(entry, *_end_of(self._call))
                else:  # the log keeps it as begun, so that it is not begun again
                    self._report(entry, "failed", f"taking it back was aborted; {_UNKNOWN}")
                raise
            except Exception as error:  # the others can be taken back all the same
                error_id = f"{entry.call_id}-undo"
                _logger.exception("call %s of %s is taken back, %s", entry.call_id, entry.skill, error_id)
                self._note_end(entry, "failed", internal_error(error_id, error))
            else:
                self._note_end(entry, how, text)

    def _note_end(self, entry: UndoEntry, how: _How, text: str, *, left: bool = False) -> None:
        """Say how it ended; ``left`` is whether it is still there to be taken back."""
        fields = self._report(entry, how, text).model_dump()
        self._emit(EventKind.UNDO, entry.missions, phase="end", **fields, left=left)

    def _report(self, entry: UndoEntry, how: _How, text: str) -> Undone:
        undone = Undone(call_id=entry.call_id, skill=entry.skill, arguments=dict(entry.arguments), how=how, text=text)
        self.done.append(undone)
        return undone

    async def _undo_one(self, entry: UndoEntry, skills: Mapping[str, OfferedSkill]) -> tuple[_How, str]:
        """Raises ``_NotBegun`` if it could not be begun, and may be later."""
        self._call = None
        if entry.call_id in self._running:
            raise _NotBegun("it still runs")
        if not entry.reversible:
            return "impossible", "what it did can't be taken back"
        if not entry.undo:
            ended = "it was ended, but " if entry.call_id in self._cut_off else ""
            return "impossible", f"{ended}it declares no undo"
        arguments = {"arguments": dict(entry.arguments), "result": entry.result}
        offered = skills.get(entry.undo)
        if self._held(entry):
            raise _NotBegun("it needs motion, and the robot is held still")
        if offered is not None and "call_id" in offered.parameters.get("properties", {}):
            arguments["call_id"] = entry.call_id
        try:
            self._call = await self._calls.start(entry.undo, arguments, silent=True)
        except SkillError as error:
            if _never_began(error):
                raise _NotBegun(str(error)) from error
            return "failed", str(error)
        return await self._ended(self._call, entry)

    async def _ended(self, call: OpenCall, entry: UndoEntry) -> tuple[_How, str]:
        try:
            await self._closed(call, entry)
        except TimeoutError:
            await self._calls.endings.end([call], "undoing took too long", bound_s=self._settle_s)
            return "failed", f"{call.skill} took longer than {self._timeout_s:g} s"
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
            began, held = clock.monotonic(), self._held(entry)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(rest_s, _LOOK_S)):
                    await call.closed.wait()
            if not held:
                rest_s -= clock.monotonic() - began


def _never_began(error: SkillError) -> bool:
    """Return whether a call that could not be started has certainly not begun."""
    refusals = (CallRejectedError, UnknownSkillError, SkillArgumentError, SkillUnavailableError)
    return isinstance(error, refusals) and not isinstance(error, CallInDoubtError)


def _end_of(call: OpenCall) -> tuple[_How, str]:
    close = call.close
    if close is None or close.outcome is not Outcome.COMPLETED:
        return "failed", close.text if close else "it vanished"
    return "undone", close.text
