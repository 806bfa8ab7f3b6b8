"""The events of the agent's calls: each answers a call that is waited for, or is delivered as an update."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from dimos_streams.agent.calls.call_endings import CallEndings
from dimos_streams.agent.calls.call_starts import CallStarts
from dimos_streams.agent.calls.known_calls import KnownCalls
from dimos_streams.agent.calls.open_call import NO_CONTEXT, CallContext, Deliver, OpenCall
from dimos_streams.agent.calls.reconciliation import INTRODUCTION_S, Reconciliation
from dimos_streams.agent.missions.message_queue import CallUpdate
from dimos_streams.agent.missions.mission import all_ended
from dimos_streams.common.listeners import Listeners
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.family import asked_by, parent_of
from dimos_streams.tool_stream.opening import opening_of

_UNWANTED_S = 3.0
"""The time in s for a call to end that should not have begun."""
_logger = logging.getLogger(__name__)


class CallEvents:
    """Decides what becomes of each event of one caller's calls.

    The first update or the close answers a call that is waited for; everything else goes to ``deliver`` as an update,
    once. A call of this caller that it did not begin itself (a continuation, or from before a restart) is adopted:
    all its events are updates. Children of a call, which its skill runs as parts of it, are left out. A call is ended
    if the call that began it was asked to end, or if its missions were ended.
    """

    def __init__(
        self,
        known: KnownCalls,
        starts: CallStarts,
        endings: CallEndings,
        reconciliation: Reconciliation,
        deliver: Deliver,
    ) -> None:
        self._known = known
        self._starts = starts
        self._endings = endings
        self._reconciliation = reconciliation
        self._deliver = deliver
        self.adopted: Listeners[[OpenCall]] = Listeners()
        """Called with each call that somebody else has begun on this caller's behalf, before its updates."""
        self.closed: Listeners[[OpenCall, ToolEvent]] = Listeners()
        """Called with each call and its close, before anybody acts upon that."""
        self.child_closed: Listeners[[CallContext, ToolEvent, bool]] = Listeners()
        """Called with the context of the call that a child is a part of, the child's close, and whether this caller
        has asked the whole to end."""
        self._answers: dict[str, int] = {}

    def recorded(self, call: OpenCall) -> None:
        """Note that a call's answer is in the record: a restarted agent need not read it again."""
        self._answers.pop(call.call_id, None)

    def unrecorded_offset(self) -> int | None:
        """The offset of the oldest answer that is not in the record yet, or None if all are."""
        return min(self._answers.values()) if self._answers else None

    async def observe(self, event: ToolEvent, offset: int = 0) -> None:
        """Deal with the next event of this caller's calls; wait where ``deliver`` does.

        Events of a child, which a skill runs as a part of its call, are left to that skill: it gets them, and says of
        them what this caller should know.
        """
        if parent_of(event.call_id):
            asking = self._known.asking(event.call_id)
            if asking is not None and event.type == "close":
                self.child_closed.notify(asking.context, event, bool(asking.asked_to_end))
            return
        if event.type == "gap":
            await self._after_gap(event, offset)
            return
        if self._known.get(event.call_id) is None:
            await self._starts.all_over()  # it may be of a call whose id is still on its way to us
        call = self._call_of(event)
        if call is None or event.seq <= call.last_seq:
            return
        call.note_event(event)
        if event.type == "close":
            self.closed.notify(call, event)
        if event.type != "open":
            await self._report(call, event, offset)
        if event.type == "close" and self._known.get(call.call_id) is not None:
            self._known.close(call, event)

    async def _report(self, call: OpenCall, event: ToolEvent, offset: int) -> None:
        """Let an event answer a call that is waited for, or deliver it as an update."""
        if call.silent:
            return
        if call.answer_with(event):
            if offset:  # a close that was made has none
                self._answers[call.call_id] = offset
            return
        update = CallUpdate(event, call.missions, offset, ended_by_agent=call.ended_by_agent)
        await (call.context.deliver or self._deliver)(update)

    async def _after_gap(self, gap: ToolEvent, offset: int) -> None:
        """Deliver the gap, and close the calls whose close fell into it, by what the broker knows of them."""
        await self._deliver(CallUpdate(gap, offset=offset))
        try:
            if await self._reconciliation.close_lost(unknown_too=False):
                await asyncio.sleep(INTRODUCTION_S)
                await self._reconciliation.close_lost(unknown_too=True)
        except SkillError as error:
            _logger.warning("after a gap the open calls can't be compared with the bridge's: %s", error)

    def _call_of(self, event: ToolEvent) -> OpenCall | None:
        """The open call of an event, adopted if this is its first event, or None if the call has closed."""
        call = self._known.get(event.call_id)
        if call is None and self._known.memory.closed(event.call_id) is None:
            return self._adopt(event)
        if call is None and event.type == "close":
            self._known.memory.has_ended(event.call_id)
        return call

    def _adopt(self, event: ToolEvent) -> OpenCall:
        """Take over a call that somebody else began; end it if it should not have begun."""
        said = event.data if event.type == "open" else {}
        opening = opening_of(said)
        parent = opening.parent or asked_by(event.call_id)  # its first event may be lost
        asking = self._known.asking(parent)
        call = OpenCall(
            event.call_id,
            event.skill,
            asking.context if asking else NO_CONTEXT,
            parent,
            opening.arguments,
            arguments_known=isinstance(said.get("arguments"), Mapping),
        )
        doubtful = None if asking or parent else self._known.memory.claim_doubtful(call)
        if doubtful is not None:
            call.continue_start(doubtful)
        reason = asking.asked_to_end if asking else doubtful.asked_to_end if doubtful else ""
        self._known.add(call)
        if doubtful is not None:
            self._known.memory.settled(doubtful)
        if not event.data.get("refused"):
            self.adopted.notify(call)
            call.on_late(call.call_id)
        if reason or all_ended(call.missions):
            self._endings.end_soon([call], reason or "what led to this call was ended", bound_s=_UNWANTED_S)
        return call
