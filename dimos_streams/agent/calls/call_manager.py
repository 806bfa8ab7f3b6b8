"""The agent's calls: begun, answered, going on, continued by others, ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.agent.calls.call_endings import CallEndings, OnGivenUp, nothing_to_do
from dimos_streams.agent.calls.call_memory import CallMemory, ClosedCall
from dimos_streams.agent.calls.call_starts import CallStarts
from dimos_streams.agent.calls.open_call import Deliver, OpenCall
from dimos_streams.agent.calls.reconciliation import INTRODUCTION_S, Reconciliation
from dimos_streams.agent.missions.message_queue import CallUpdate
from dimos_streams.agent.missions.mission import Mission, all_ended
from dimos_streams.agent.policies.gates.base import Reviewer
from dimos_streams.errors import SkillError
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.family import head_of_family, parent_of
from dimos_streams.tool_stream.gateway import CallView, SkillGateway
from dimos_streams.tool_stream.opening import opening_of

_LOOK_S = 0.02
_UNWANTED_S = 3.0
"""The time in s for a call to end that should not have begun."""
_logger = logging.getLogger(__name__)


class CallManager:
    """Knows every open call of one caller and decides what becomes of each event.

    The first update or the close answers a call that is waited for; everything else goes to ``deliver`` as an update,
    once. A call of this caller that it did not begin itself (a continuation, or from before a restart) is adopted:
    all its events are updates. Children of a call, which its skill runs as parts of it, are left out. A call is ended
    if the call that began it was asked to end, or if its missions were ended.
    """

    def __init__(
        self,
        gateway: SkillGateway,
        caller: str,
        deliver: Deliver,
        *,
        key_prefix: str,
        on_given_up: OnGivenUp = nothing_to_do,
        on_adopt: Callable[[OpenCall], None] = lambda call: None,
        on_end: Callable[[ToolEvent], None] = lambda close: None,
    ) -> None:
        """``key_prefix`` makes idempotency keys; it must differ from one start of the agent to the next.

        ``on_given_up`` gets calls before they are given up, and returns what it has done about that. ``on_adopt`` is
        called with each call that somebody else has begun on this agent's behalf, before its updates; ``on_end`` with
        the close of each call.
        """
        self._gateway = gateway
        self.caller = caller
        self._deliver = deliver
        self._memory = CallMemory()
        self._reconciliation = Reconciliation(gateway, caller, self._memory, self.observe)
        self.endings = CallEndings(gateway, caller, self._memory, self.observe, on_given_up)
        self._starts = CallStarts(gateway, caller, self._memory, key_prefix)
        self._on_adopt = on_adopt
        self._on_end = on_end
        self._open: dict[str, OpenCall] = {}
        self._answers: dict[str, int] = {}

    @property
    def open(self) -> tuple[OpenCall, ...]:
        """The calls that have not closed, in the order in which they became known."""
        return tuple(self._open.values())

    @property
    def starting(self) -> bool:
        """True if a call is about to begin."""
        return self._starts.under_way

    @property
    def given_up(self) -> tuple[OpenCall, ...]:
        """The calls that were given up and may still run: their end has not been reported."""
        return self._memory.given_up

    async def start(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        missions: tuple[Mission, ...] = (),
        *,
        on_duplicate: OnDuplicate | None = None,
        deliver: Deliver | None = None,
        reviewer: Reviewer | None = None,
        time_limit_s: float | None = None,
        silent: bool = False,
    ) -> OpenCall:
        """Begin a call that ``answer`` will be asked about. Raises ``SkillError`` if it is refused.

        ``deliver`` gets its updates; None stands for the agent's queue. ``reviewer`` is the one that has let it
        begin. After ``time_limit_s`` it is cancelled, and given up if that does not help. If starting is cancelled, a
        call that begins nevertheless is ended.
        """
        call = OpenCall("", skill, missions, arguments=dict(arguments), deliver=deliver, silent=silent)
        call.reviewer = reviewer
        await self._starts.start(call, on_duplicate)
        call.answer = asyncio.get_running_loop().create_future()
        self._track(call)
        self.endings.limit(call, time_limit_s)
        return call

    async def answer(self, call: OpenCall, timeout_s: float) -> ToolEvent | None:
        """Return the first update or the close of a call, or None if neither came in time: then both are delivered
        later."""
        if call.answer is None:
            return None
        try:
            await asyncio.wait([call.answer], timeout=timeout_s)
            return call.answer.result() if call.answer.done() else None
        finally:
            call.answer = None

    def recorded(self, call: OpenCall) -> None:
        """Note that a call's answer is in the record: a restarted agent need not read it again."""
        self._answers.pop(call.call_id, None)

    def unrecorded_offset(self) -> int | None:
        """The offset of the oldest answer that is not in the record yet, or None if all are."""
        return min(self._answers.values()) if self._answers else None

    async def cancel_by_id(self, call_id: str, reason: str) -> None:
        """Ask a call to end, also one of which no event has come yet. Raises ``SkillError`` if it can't be asked."""
        if (call := self._open.get(call_id)) is not None:
            call.ask_to_end(reason)
        await self._gateway.cancel(call_id, reason)

    async def open_view(self, call_id: str) -> CallView | None:
        """Return the open call of that id, of any caller, or None if there is none. Raises ``SkillError``."""
        views = await self._gateway.calls(open_only=True)
        return next((view for view in views if view.call_id == call_id), None)

    async def wait_closed(self, call_id: str, within_s: float) -> None:
        """Wait until this caller's call of that id has closed, for ``within_s`` at most; for so long also if nothing
        has come of it yet."""
        if self._memory.closed(call_id) is not None:
            return
        call = self._open.get(call_id)
        closed = asyncio.Event() if call is None else call.closed
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await closed.wait()

    async def find(self, call_id: str, within_s: float) -> OpenCall | None:
        """Return an open call of this caller, or the open call that a child belongs to; wait up to ``within_s`` for
        one that is not known yet. None if it has closed or does not become known."""
        call_id = head_of_family(call_id)
        deadline = clock.monotonic() + within_s
        while (call := self._open.get(call_id)) is None and self._memory.closed(call_id) is None:
            if clock.monotonic() >= deadline:
                break
            await asyncio.sleep(_LOOK_S)
        return call

    def assign(self, call: OpenCall, missions: tuple[Mission, ...]) -> None:
        """Assign an adopted call to these missions, because it turns out to be theirs."""
        for mission in missions:
            mission.hold()
        call.missions, call.last_seq = missions, 0

    def remember_closed(self, reviewers: Mapping[str, Reviewer | None]) -> None:
        """Remember calls of which nothing is delivered any more, because their close is in a record. ``reviewers`` is
        who has let each begin, by the calls' ids."""
        self._memory.remember_recorded(reviewers)

    def hand_over(self, call: OpenCall, to: Deliver | None) -> None:
        """Let ``to`` get the updates of a call from now on; None gives it back to the agent's queue."""
        call.deliver = to

    async def observe(self, event: ToolEvent, offset: int = 0) -> None:
        """Deal with the next event of this caller's calls; wait where ``deliver`` does.

        Events of a child, which a skill runs as a part of its call, are left to that skill: it gets them, and says of
        them what this caller should know.
        """
        if parent_of(event.call_id):
            return
        if event.type == "gap":
            await self._after_gap(event, offset)
            return
        if event.call_id not in self._open:
            await self._starts.settled()  # it may be of a call whose id is still on its way to us
        call = self._call_of(event)
        if call is None or event.seq <= call.last_seq:
            return
        call.last_seq, call.text = event.seq, event.text
        if event.type != "open":
            await self._report(call, event, offset)
        if event.type == "close":
            self._forget(call, event)

    async def adopt_open(self, known: Iterable[OpenCall] = ()) -> tuple[OpenCall, ...]:
        """Take over the calls of this caller that are open already, and those that a record knows of.

        Return those that no record knew. Raises ``SkillError``.
        """
        recorded = {call.call_id: call for call in known}
        new = await self._reconciliation.unknown(lambda call_id: call_id in recorded or call_id in self._open)
        for call in recorded.values():
            self._track(call)
        return tuple(self._take_over(view) for view in new)

    def _take_over(self, view: CallView) -> OpenCall:
        known = self._known(view.parent)
        call = OpenCall(
            view.call_id,
            view.skill,
            known.missions if known else (),
            parent=view.parent,
            last_seq=view.last_seq,
            arguments=view.arguments,
            reviewer=known.reviewer if known else None,
        )
        return self._track(call)

    async def close_lost(self, *, unknown_too: bool) -> bool:
        """Close calls that the broker says have closed, and with ``unknown_too`` those that it does not know; return
        whether there are unknown ones left. Raises ``SkillError``."""
        return await self._reconciliation.close_lost(lambda: self.open, unknown_too=unknown_too)

    async def stop(self) -> None:
        """End the tasks of its own; the calls themselves go on. Twice is fine."""
        await self.endings.stop()

    async def _report(self, call: OpenCall, event: ToolEvent, offset: int) -> None:
        """Let an event answer a call that is waited for, or deliver it as an update."""
        if call.silent:
            pass
        elif call.answer is not None and not call.answer.done() and event.type != "progress":
            if offset:  # a close that was made has none
                self._answers[call.call_id] = offset
            call.answered = event
            call.answer.set_result(event)
        else:
            update = CallUpdate(event, call.missions, offset, ended_by_agent=call.ended_by_agent)
            await (call.deliver or self._deliver)(update)

    async def _after_gap(self, gap: ToolEvent, offset: int) -> None:
        """Deliver the gap, and close the calls whose close fell into it, by what the broker knows of them."""
        await self._deliver(CallUpdate(gap, offset=offset))
        try:
            if await self.close_lost(unknown_too=False):
                await asyncio.sleep(INTRODUCTION_S)
                await self.close_lost(unknown_too=True)
        except SkillError as error:
            _logger.warning("after a gap the open calls can't be compared with the bridge's: %s", error)

    def _call_of(self, event: ToolEvent) -> OpenCall | None:
        """The open call of an event, adopted if this is its first event, or None if the call has closed."""
        call = self._open.get(event.call_id)
        if call is None and self._memory.closed(event.call_id) is None:
            return self._adopt(event)
        if call is None and event.type == "close":
            self._memory.has_ended(event.call_id)
        return call

    def _adopt(self, event: ToolEvent) -> OpenCall:
        """Take over a call that somebody else began; end it if it should not have begun."""
        said = event.data if event.type == "open" else {}
        opening = opening_of(said)
        parent, known = opening.parent, self._known(opening.parent)
        call = OpenCall(event.call_id, event.skill, known.missions if known else (), parent)
        call.arguments = opening.arguments
        call.arguments_known = isinstance(said.get("arguments"), Mapping)
        if known is not None:
            call.deliver, call.reviewer = known.deliver, known.reviewer
        reason = known.asked_to_end if known else "" if parent else self._doubt(call)
        self._track(call)
        if not event.data.get("refused"):
            self._on_adopt(call)
        if reason or all_ended(call.missions):
            self.endings.end_soon([call], reason or "what led to this call was ended", bound_s=_UNWANTED_S)
        return call

    def _doubt(self, call: OpenCall) -> str:
        """The reason why a call must not run, if it is one whose starting was cancelled; else empty."""
        doubtful = self._memory.claim_doubtful(call)
        if doubtful is None:
            return ""
        call.missions, call.silent, call.reviewer = doubtful.missions, doubtful.silent, doubtful.reviewer
        return doubtful.asked_to_end

    def _known(self, parent: str) -> OpenCall | ClosedCall | None:
        asking = head_of_family(parent)
        return self._open.get(asking) or self._memory.closed(asking)

    def _track(self, call: OpenCall) -> OpenCall:
        for mission in call.missions:
            mission.hold()
        self._open[call.call_id] = call
        return call

    def _forget(self, call: OpenCall, close: ToolEvent) -> None:
        if self._open.pop(call.call_id, None) is None:
            return
        call.close = close
        call.closed.set()
        self._on_end(close)
        if call.timer is not None:
            call.timer.cancel()
        self._memory.remember_closed(call)
        for mission in call.missions:
            mission.release()
