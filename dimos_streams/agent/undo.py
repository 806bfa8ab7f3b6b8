"""What the agent has done, and how it is taken back: newest first, past failures."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from dimos_streams.agent.calls import CallManager
from dimos_streams.agent.events import EventKind
from dimos_streams.agent.gates.base import Emit
from dimos_streams.agent.open_call import OpenCall
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages import AgentEvent
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import OfferedSkill


@dataclasses.dataclass(slots=True, kw_only=True)
class Deed:
    """A call that was begun, with what taking it back needs."""

    call_id: str
    skill: str
    arguments: Mapping[str, Any]
    undo: str = ""
    """The skill that takes it back, or empty."""
    reversible: bool = True
    missions: tuple[str, ...] = ()
    result: Any = None


class Undone(BaseModel):
    """What became of one call that was to be taken back."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    call_id: str
    skill: str
    arguments: dict[str, Any]
    how: Literal["undone", "failed", "impossible"]
    text: str
    """What the undoing skill said, or why it can't be undone."""

    def __str__(self) -> str:
        return f"{self.skill} (call {self.call_id}): {self.how}: {self.text}"


class UndoJournal:
    """The newest ``capacity`` calls that have changed the world; made of the agent's events, so it outlives it."""

    def __init__(self, capacity: int = 200) -> None:
        self._deeds: deque[Deed] = deque(maxlen=capacity)

    @property
    def deeds(self) -> tuple[Deed, ...]:
        """Oldest first."""
        return tuple(self._deeds)

    def apply(self, event: AgentEvent) -> None:
        """Take in what an event says of calls."""
        data = event.data
        if event.kind == EventKind.CALL_OPEN and not data.get("senses"):
            self._deeds.append(
                Deed(
                    call_id=data["call_id"],
                    skill=data["skill"],
                    arguments=data["arguments"],
                    undo=data.get("undo", ""),
                    reversible=data.get("reversible", True),
                    missions=event.missions,
                )
            )
        elif event.kind == EventKind.UNDO and data.get("phase") == "end":
            self._remove(data["call_id"])
        elif event.kind in (EventKind.NEWS, EventKind.RESULT):
            self._take_result(data.get("event"))

    def newest(self, count: int | None, missions: Iterable[str] | None = None) -> list[Deed]:
        """The newest ``count``, or all; of some missions only, where they are given. Newest first."""
        wanted = None if missions is None else set(missions)
        found = [deed for deed in reversed(self._deeds) if wanted is None or wanted & set(deed.missions)]
        return found[:count]

    def _take_result(self, event: Mapping[str, Any] | None) -> None:
        if not event or event.get("type") != "close":
            return
        for deed in reversed(self._deeds):
            if deed.call_id == event["call_id"]:
                deed.result = event["data"].get("result")
                return

    def _remove(self, call_id: str) -> None:
        for deed in self._deeds:
            if deed.call_id == call_id:
                self._deeds.remove(deed)
                return


class Undoing:
    """Takes calls back."""

    def __init__(self, calls: CallManager, emit: Emit, *, settle_s: float, timeout_s: float) -> None:
        """``settle_s`` is for a call that still runs, ``timeout_s`` for each call that takes one back."""
        self._calls = calls
        self._emit = emit
        self._settle_s = settle_s
        self._timeout_s = timeout_s
        self.done: list[Undone] = []
        """So far."""

    async def undo(self, deeds: Iterable[Deed], skills: Mapping[str, OfferedSkill]) -> None:
        """Take calls back in the order given, each after it has ended. ``skills`` are those offered now."""
        for deed in deeds:
            self._emit(EventKind.UNDO, deed.missions, phase="start", call_id=deed.call_id, skill=deed.skill)
            how, text = await self._undo_one(deed, skills)
            self._emit(
                EventKind.UNDO,
                deed.missions,
                phase="end",
                call_id=deed.call_id,
                skill=deed.skill,
                arguments=dict(deed.arguments),
                how=how,
                text=text,
            )
            self.done.append(
                Undone(call_id=deed.call_id, skill=deed.skill, arguments=dict(deed.arguments), how=how, text=text)
            )

    async def _undo_one(
        self, deed: Deed, skills: Mapping[str, OfferedSkill]
    ) -> tuple[Literal["undone", "failed", "impossible"], str]:
        running = [call for call in self._calls.open if call.call_id == deed.call_id]
        if await self._calls.end(running, "it is undone", bound_s=self._settle_s):
            return "failed", "it still runs"
        if not deed.reversible:
            return "impossible", "what it did can't be taken back"
        if not deed.undo:
            return "impossible", "it declares no undo"
        arguments = {"arguments": dict(deed.arguments), "result": deed.result}
        offered = skills.get(deed.undo)
        if offered is not None and "call_id" in offered.parameters.get("properties", {}):
            arguments["call_id"] = deed.call_id
        try:
            call = await self._calls.start(deed.undo, arguments, silent=True)
        except SkillError as error:
            return "failed", str(error)
        return await self._ended(call)

    async def _ended(self, call: OpenCall) -> tuple[Literal["undone", "failed"], str]:
        try:
            async with asyncio.timeout(self._timeout_s):
                await call.closed.wait()
        except TimeoutError:
            await self._calls.end([call], "undoing took too long", bound_s=self._settle_s)
            return "failed", f"{call.skill} took longer than {self._timeout_s:g} s"
        except BaseException:
            self._calls.end_soon([call], "undoing was aborted", bound_s=self._settle_s)
            raise
        close = call.close
        if close is None or close.outcome is not Outcome.COMPLETED:
            return "failed", close.text if close else "it vanished"
        return "undone", close.text
