"""One open call of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dimos_streams import clock
from dimos_streams.agent.missions.message_queue import CallUpdate
from dimos_streams.agent.missions.mission import Mission, release_all, retain_all
from dimos_streams.agent.policies.gates.base import Reviewer
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
    """The id of the call that began it on the agent's behalf; empty if none did."""
    last_seq: int = 0
    """The number of the newest event that was dealt with."""
    answer: asyncio.Future[ToolEvent] | None = None
    """A future for the first update or the close; None once the call counts as answered."""
    answered: ToolEvent | None = None
    """The event that answered it, or None if nobody waited for that."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    arguments_known: bool = True
    """False if only later events of the call were seen."""
    reviewer: Reviewer | None = None
    """The reviewer that has let it begin, and that judges the calls that it asks for, even if the call has been
    handed over since; None for that of the loop that works on its missions."""
    on_late: Callable[[str], None] = field(default=lambda call_id: None)
    """Called with the id if its starting was cut short and it has begun all the same, before its updates."""
    deliver: Deliver | None = None
    """The receiver of its updates; None for the agent's queue."""
    silent: bool = False
    """True if no event of it is delivered: its caller waits for ``close``."""
    asked_to_end: str = ""
    """The reason it was asked to end, as set by ``ask_to_end``; what it begins from then on is ended too. Empty if it
    was not."""
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the call is asked to end."""
    timer: asyncio.TimerHandle | None = None
    """The timer that ends it at its time limit."""
    text: str = ""
    """The text of its newest event."""
    close: ToolEvent | None = None
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    refused: bool = False
    """True if its module has certainly not begun it, as the bridge has said."""

    @property
    def ended_by_agent(self) -> bool:
        """True if its end is what all its missions want: that one of them was ended does not mean
        that the others want it."""
        ended = [mission.ended for mission in self.missions]
        return bool(self.asked_to_end) and (all(ended) or not any(ended))

    def assign(self, missions: tuple[Mission, ...]) -> None:
        """Let the call be work of these missions from now on, and of no others."""
        before, self.missions = self.missions, missions
        retain_all(missions)
        release_all(before)

    def ask_to_end(self, reason: str) -> None:
        """Note that the call is asked to end. The first reason stays."""
        self.asked_to_end = self.asked_to_end or reason
        self.ending.set()


def listed(calls: Iterable[OpenCall]) -> str:
    """A list of calls by their skills and ids, for people."""
    return ", ".join(f"{call.skill} (call {call.call_id})" for call in calls)


def made_close(call: OpenCall, caller: str, outcome: Outcome, text: str, view: CallView | None = None) -> ToolEvent:
    """Return a close that stands for one that can't be had (any more)."""
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
