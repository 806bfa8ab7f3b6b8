"""The operators' commands that take the loop some time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.control.reports import AbortReport, Undone
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.errors import SkillError

R = TypeVar("R")
EndOthers: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]
"""Ends the calls of others, as far as that is possible within a bound."""


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
