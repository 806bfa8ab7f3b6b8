"""The operators' commands that take the loop some time, and their reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.control.undo import Undone
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.common.readable.plural import plural
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.operator.messages.kept_report import KeptReport

R = TypeVar("R")
EndOthers: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]
"""Ends the calls of others, as far as that is possible within a bound."""


class AbortReport(HoldView, KeptReport):
    """The report of an abort: what it did, and what the velocity gates said while the calls ended."""

    reason: str
    missions: tuple[str, ...]
    """Ids of the missions that it ended."""
    cancelled: tuple[str, ...]
    """Ids of the calls that were open."""
    unfinished: tuple[str, ...]
    """Ids of the calls that were given up, now or before: they may still run, and the agent stays paused."""
    stays_paused: bool = False
    """True if the operator had paused the agent before: only a ``resume`` ends that."""
    undone: tuple[Undone, ...] = ()
    """The calls that were taken back or could not be, newest first."""

    def __str__(self) -> str:
        missions, calls = len(self.missions), len(self.cancelled)
        ended = f"{plural(missions, 'mission')}, {plural(calls, 'call')}"
        if not missions and not calls:
            ended += " (those of others are not the agent's to end: `say stop` ends these, too)"
        lines = [f"aborted: {ended}; the robot {'is' if self.unfinished else 'was'} {super().__str__()}"]
        if self.unfinished:
            lines.append(f"may still run: {', '.join(self.unfinished)}; the agent stays paused")
        elif self.stays_paused:
            lines.append("the agent stays paused: `resume` ends that")
        lines[-1] = self.with_unkept(lines[-1])
        return "\n".join([*lines, *map(str, self.undone)])


def _future() -> asyncio.Future[R]:
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False, slots=True)
class LoopCommand(Generic[R]):
    """A request to the loop to do something. ``done`` is always answered, at the latest when the loop ends."""

    done: asyncio.Future[R] = field(default_factory=_future, kw_only=True)
    unattended: bool = field(default=False, kw_only=True)
    """True if the call that ordered it has ended, so that the bridge may begin motions of others."""

    def finish(self, result: R) -> None:
        """Answer whoever asked."""
        if not self.done.done():
            self.done.set_result(result)

    def give_up(self) -> None:
        """Answer that the loop ends first."""
        if not self.done.done():
            self.done.set_exception(SkillError("the agent is stopping"))
            self.done.exception()  # perhaps nobody waits any more


@dataclass(eq=False, slots=True)
class AbortCommand(LoopCommand[AbortReport]):
    """The command to end everything."""

    reason: str
    rollback: bool
    missions: tuple[Mission, ...]
    calls: tuple[OpenCall, ...]
    """The calls that were open when the abort was asked for."""
    others: list[asyncio.Task[Any]] = field(default_factory=list)
    """Tasks that end the calls of others, where that is ordered as well: the abort is not over before them."""
    on_end: list[Callable[[AbortReport], None]] = field(default_factory=list)
    """Functions that are called at its end, before anything else may begin."""

    def end_others(self, ending: EndOthers) -> None:
        """Begin to end the calls of others as well. A later order repeats this, for calls that have begun since."""
        self.others.append(asyncio.get_running_loop().create_task(ending()))

    def give_up(self) -> None:
        """See ``LoopCommand``."""
        for task in self.others:
            task.cancel()
        LoopCommand.give_up(self)


@dataclass(eq=False, slots=True)
class UndoCommand(LoopCommand[list[Undone]]):
    """The command to take back the newest ``count`` calls, or all if it is None."""

    count: int | None
