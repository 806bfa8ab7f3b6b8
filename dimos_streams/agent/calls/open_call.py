"""One open call of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from dimos_streams import clock
from dimos_streams.agent.missions.message_queue import CallUpdate
from dimos_streams.agent.missions.mission import Mission, release_all, retain_all
from dimos_streams.agent.policies.gates.base import Reviewer
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import CallView

Deliver: TypeAlias = Callable[[CallUpdate], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context that a call passes on to the calls that it asks for: whose work it is, who hears and judges it."""

    missions: tuple[Mission, ...] = ()
    deliver: Deliver | None = None
    """The receiver of its updates; None for the agent's queue."""
    reviewer: Reviewer | None = None
    """The reviewer that has let it begin, and that judges the calls that it asks for, even if the call has been
    handed over since; None for that of the loop that works on its missions."""


NO_CONTEXT = CallContext()
"""The context of a call that is no mission's work."""


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call of this agent that has not closed. What becomes of it is noted by its methods."""

    call_id: str
    skill: str
    context: CallContext = NO_CONTEXT
    parent: str = ""
    """The id of the call that began it on the agent's behalf; empty if none did."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    arguments_known: bool = True
    """False if only later events of the call were seen."""
    last_seq: int = 0
    """The number of the newest event that was dealt with."""
    silent: bool = False
    """True if no event of it is delivered: its caller waits for ``close``."""
    on_late: Callable[[str], None] = field(default=lambda call_id: None)
    """Called with the id if its starting was cut short and it has begun all the same, before its updates."""
    text: str = field(default="", init=False)
    """The text of its newest event."""
    answered: ToolEvent | None = field(default=None, init=False)
    """The event that answered it, or None if nobody waited for that."""
    asked_to_end: str = field(default="", init=False)
    """The reason it was asked to end; what it begins from then on is ended too. Empty if it was not."""
    ending: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set when the call is asked to end."""
    close: ToolEvent | None = field(default=None, init=False)
    closed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _answer: asyncio.Future[ToolEvent] | None = field(default=None, init=False)
    """A future for the first update or the close; None while nobody waits for that."""
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)

    @property
    def missions(self) -> tuple[Mission, ...]:
        """The missions whose work it is."""
        return self.context.missions

    @property
    def ended_by_agent(self) -> bool:
        """True if its end is what all its missions want: that one of them was ended does not mean
        that the others want it."""
        if not self.asked_to_end:
            return False
        ended = [mission.ended for mission in self.missions]
        return all(ended) or not any(ended)

    def note_begun(self, call_id: str) -> None:
        """Note that the bridge has begun the call, and that its answer is waited for."""
        self.call_id = call_id
        self._answer = asyncio.get_running_loop().create_future()

    def continue_start(self, doubtful: OpenCall) -> None:
        """Note that this call is what has come of a start in doubt, and goes on as that was meant."""
        self.context = replace(self.context, missions=doubtful.missions, reviewer=doubtful.context.reviewer)
        self.silent, self.on_late = doubtful.silent, doubtful.on_late

    def note_event(self, event: ToolEvent) -> None:
        """Note the newest event of the call."""
        self.last_seq, self.text = event.seq, event.text

    def answer_with(self, event: ToolEvent) -> bool:
        """Answer the call with an event, if its answer is waited for; return whether that is so. Progress is no
        answer."""
        if self._answer is None or self._answer.done() or event.type == "progress":
            return False
        self.answered = event
        self._answer.set_result(event)
        return True

    async def answer(self, timeout_s: float) -> ToolEvent | None:
        """Return the first update or the close of the call, or None if neither came in time: then both are delivered
        later."""
        if self._answer is None:
            return None
        try:
            await asyncio.wait([self._answer], timeout=timeout_s)
            return self._answer.result() if self._answer.done() else None
        finally:
            self._answer = None

    def hand_over(self, missions: tuple[Mission, ...], deliver: Deliver | None) -> None:
        """Let the call be work of these missions from now on, and of no others; ``deliver`` gets its updates."""
        before, self.context = self.missions, replace(self.context, missions=missions, deliver=deliver)
        retain_all(missions)
        release_all(before)

    def resume(self, missions: tuple[Mission, ...], reviewer: Reviewer | None) -> None:
        """Let the call, which was taken over without its past, be what the record has of it: all its events are still
        to be dealt with."""
        self.hand_over(missions, self.context.deliver)
        self.context = replace(self.context, reviewer=reviewer)
        self.last_seq = 0

    def ask_to_end(self, reason: str) -> None:
        """Note that the call is asked to end. The first reason stays."""
        self.asked_to_end = self.asked_to_end or reason
        self.ending.set()

    def set_timer(self, after_s: float, then: Callable[[], None]) -> None:
        """Call ``then`` after a time, unless the timer is stopped before, at the latest by the call's close."""
        self._timer = asyncio.get_running_loop().call_later(after_s, then)

    def stop_timer(self) -> None:
        """Stop the timer, if one is set."""
        if self._timer is not None:
            self._timer.cancel()

    def note_closed(self, close: ToolEvent) -> None:
        """Note that the call has closed."""
        self.close = close
        self.closed.set()
        self.stop_timer()


def listed(calls: Iterable[OpenCall]) -> str:
    """A list of calls by their skills and ids, for people."""
    return ", ".join(f"{call.skill} (call {call.call_id})" for call in calls)


def made_close(call: OpenCall, caller: str, outcome: Outcome, text: str, view: CallView | None = None) -> ToolEvent:
    """Return a close that stands for one that can't be had (any more). ``view`` is what the broker knows of it."""
    return ToolEvent(
        utime=clock.utime(),
        call_id=call.call_id,
        seq=max(call.last_seq, view.last_seq if view else 0) + 1,
        type="close",
        module=view.module if view else "",
        skill=call.skill,
        caller=caller,
        text=text,
        data={"result": None} | (view.close_data() if view else {}) | {"outcome": outcome.value},
    )
