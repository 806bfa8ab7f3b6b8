"""One call of the agent, as long as it is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dimos_streams import clock
from dimos_streams.agent.missions.message_queue import CallUpdate
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import CallView

Deliver: TypeAlias = Callable[[CallUpdate], Awaitable[None]]


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call of this agent that has not closed."""

    call_id: str
    skill: str
    missions: tuple[Mission, ...] = ()
    parent: str = ""
    """The call that began it on the agent's behalf, or empty."""
    last_seq: int = 0
    """The number of the newest event that was dealt with."""
    answer: asyncio.Future[ToolEvent] | None = None
    """Waits for the first update or the close; None once the call counts as answered."""
    answered: ToolEvent | None = None
    """The event that answered it, if that was waited for."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    arguments_known: bool = True
    """False for one of which only later events were seen."""
    reviewer: Any = None
    """The ``Reviewer`` who has let it begin, and judges what it goes on with, whoever's it is by then; None for the
    one of whose it is."""
    deliver: Deliver | None = None
    """Who gets its updates now; None for the agent's queue."""
    silent: bool = False
    """Nothing of it is delivered: whoever began it waits for ``close``."""
    withdrawn: str = ""
    """Why it was asked to end; what it begins from then on is ended too. Set by ``withdraw``."""
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is withdrawn."""
    timer: asyncio.TimerHandle | None = None
    """Ends it at its time limit."""
    text: str = ""
    """The text of its newest event."""
    close: ToolEvent | None = None
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def withdraw(self, reason: str) -> None:
        """It is asked to end. The first reason stays."""
        self.withdrawn = self.withdrawn or reason
        self.ending.set()


def listed(calls: Iterable[OpenCall]) -> str:
    """Calls by their skills and ids, for people."""
    return ", ".join(f"{call.skill} (call {call.call_id})" for call in calls)


def made_close(call: OpenCall, caller: str, outcome: Outcome, text: str, view: CallView | None = None) -> ToolEvent:
    """A close that stands for one that can't be had (any more)."""
    return ToolEvent(
        utime=clock.utime(),
        call_id=call.call_id,
        seq=max(call.last_seq, view.last_seq if view else 0) + 1,
        type="close",
        module=view.module if view else "",
        skill=call.skill,
        caller=caller,
        text=text,
        data={"outcome": outcome.value, "result": view.result if view else None},
    )
