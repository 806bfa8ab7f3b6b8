"""The ledger: calls, their leases and their events; everything that happens to a call goes through it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.bridge.calls.state.leases import Leases
from dimos_streams.bridge.calls.state.remembered_calls import Calls
from dimos_streams.bridge.calls.state.repeat import Repeat
from dimos_streams.bridge.calls.state.unsolicited_calls import UnsolicitedCalls
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.listeners import Listeners
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.receiving.received_call import ResumePoint

MAX_OPEN = 1000
"""Maximum number of open calls; more are refused, but for operators' orders (``call_admission.py``)."""
_KEPT_CLOSED = 1000
"""Number of closed calls in memory, of those that agents began and of all others each, and of those that are taken up
again after a restart. The journal keeps twice as many (``JournalLimits.closed_calls``): ``recall`` finds them."""
_BEHIND_S = 0.001
"""Delay of a commit, in seconds, so that readers go first. A live loop's timer comes a millisecond or two later
than it was set for."""
_APART_S = 0.004
"""Time between two batches of events, in seconds, below which there is no such delay."""

_log = LimitedLog(logging.getLogger(__name__))

UnjournalledListener = Callable[[int, ToolEvent], None]
"""A function that gets an event that is not journalled, with the offset of the newest event before it."""


class Ledger:
    """Folds events into calls, keeps both in the journal, hands the events to the broadcast, and frees leases.

    Of a call that is not journalled only the state is kept, in one row. Its events have no offset; they go to those
    who ``listen_unjournalled``, at once, and are gone if nobody does.
    """

    def __init__(self, broadcast: JournalBroadcast) -> None:
        self.journal = broadcast.journal
        self.broadcast = broadcast
        self.calls = Calls(_KEPT_CLOSED)
        self.leases = Leases()
        self._listeners: Listeners[[int, ToolEvent]] = Listeners()
        self._unsolicited = UnsolicitedCalls()
        self.waiting: dict[str, CallState] = {}
        """The calls that have been asked for and wait to begin, by id."""
        self.ended_all = 0
        """Number of orders that ended all calls, or all of a robot."""
        self._known_from = float("-inf")
        self._last_number = 0
        """The number of the newest call."""
        self._entered_at = float("-inf")
        """The time at which events were last entered, on the monotonic clock."""
        self.ignored = 0
        """Number of events that were ignored: of calls that were closed already, of too many calls, or entered
        before."""
        self.closed: dict[str, int] = dict.fromkeys(map(str, Outcome), 0)
        """Numbers of calls that were closed since the ledger was made, by outcome."""

    def restore(self) -> list[CallState]:
        """Take up the calls of a journal that was written before a restart, and their leases; return all of them,
        also those that there is no room to remember."""
        found: list[CallState] = []
        for row in self.journal.calls(_KEPT_CLOSED):
            call = CallState.read(row)
            if call is None:
                continue
            self._last_number = max(self._last_number, call.position[0])
            if call.state != CLOSED:
                self.leases.grant(call.call_id, call.resources)
            if call.last_seq == 0:
                call.request = Repeat(at=call.since)
            self.calls.add(call)
            found.append(call)
        emptied = self.journal.first_offset > self.journal.last_offset > 0
        if emptied or self.journal.state != "ok":  # calls may run that are not in it
            self._known_from = clock.monotonic() + ALIVE_S
        return found

    async def until_all_are_known(self) -> None:
        """Wait until every module has had the time to say which calls it runs, if the journal was lost: they may hold
        leases."""
        remaining = self._known_from - clock.monotonic()
        if remaining > 0:
            await asyncio.sleep(remaining)

    def listen_unjournalled(self, listener: UnjournalledListener) -> Callable[[], None]:
        """Call ``listener`` with each event of a call that is not journalled, from now on.

        The returned function ends that, and may be called twice.
        """
        return self._listeners.add(listener)

    def begin(self, call: CallState) -> None:
        """Enter a call that is about to be requested; its leases are its own from now on."""
        call.number, call.events_from = self._next_number(), self.journal.last_offset + 1
        self.save(call)
        self.leases.grant(call.call_id, call.resources)
        self.calls.add(call)

    def _next_number(self) -> int:
        self._last_number = max(clock.utime(), self._last_number + 1)
        return self._last_number

    def save(self, *calls: CallState) -> None:
        """Keep what is new of calls besides their events."""
        if calls:
            self.journal.append([], [call.row() for call in calls])

    def enter(self, events: Sequence[ToolEvent]) -> None:
        """Enter events, each call's in order. When this returns they are safe and on their way to the readers.

        If it raises, they may be entered again: what the journal has by then is not entered twice.
        """
        calls = self._going_on(events)
        if calls is None:
            self._enter_changing(events)
            return
        entries = self.journal.keep(events)
        try:
            self.broadcast.publish(entries)
        finally:  # the journal has them, whoever could not be told
            for event in _lasting(events):  # after delivery, because readers are waiting
                call = calls[event.call_id]
                call.apply(event)
                if call.unsolicited:
                    self._unsolicited.account(call)
            self._commit_soon()

    def _commit_soon(self) -> None:
        """Have the database take in what only the journal's tail has: at once where events come close together, else
        after ``_BEHIND_S``, because a reader just woken competes for the same processor."""
        before, self._entered_at = self._entered_at, clock.monotonic()
        if self._entered_at - before < _APART_S:
            self.journal.commit_tail()
        elif self.journal.is_uncommitted:
            asyncio.get_running_loop().call_later(_BEHIND_S, self.journal.commit_tail)

    def _going_on(self, events: Sequence[ToolEvent]) -> dict[str, CallState] | None:
        """The calls of these events by id; None if one is not journalled, or if an event changes its call's state,
        has been entered before, or is in other names than its call."""
        calls: dict[str, CallState] = {}
        for event in events:
            call = calls.get(event.call_id) or self.calls.get(event.call_id)
            if call is None or not call.journalled or event.seq <= call.last_seq or call.changes_state_with(event):
                return None
            if not call.is_named_in(event):
                return None
            calls[event.call_id] = call
        return calls

    def _enter_changing(self, events: Sequence[ToolEvent]) -> None:
        """Enter events of which some change the state of their calls, are in other names than these, or are of calls
        that are not journalled: what has changed of the calls is kept with them."""
        folded = _Folded()
        try:
            for event in events:
                self._fold(event, folded)
            rows = [call.row() for call in folded.changed.values()]
            entries = self.journal.append(folded.taken, rows) if rows else self.journal.keep(folded.taken)
        except BaseException:
            folded.undo()
            raise
        self.ignored += len(events) - len(folded.taken) - len(folded.unjournalled)
        try:
            self.broadcast.publish(entries)
            for offset, event in folded.unjournalled:
                self._listeners.notify(offset, event)
        finally:  # the journal has them, whoever could not be told
            for call, _ in folded.touched.values():
                self._conclude(call)
            self._commit_soon()

    def _fold(self, event: ToolEvent, folded: _Folded) -> None:
        """Apply an event to its call, unless it is to be ignored."""
        call = self._call_of(event)
        if call is None or call.state == CLOSED or event.seq <= call.last_seq:
            return
        event = call.named(event)
        if call.call_id not in folded.touched:
            folded.touched[call.call_id] = call, call.copy()
        if call.journalled:
            folded.taken.append(event)
        else:
            folded.unjournalled.append((self.journal.last_offset + len(folded.taken), event))
        # How far a call has got is in the journal with its events, or nowhere but in its row.
        if call.changes_state_with(event) or not call.journalled:
            folded.changed[call.call_id] = call
        call.apply(event)
        call.close_by(clock.utime())
        if call.unsolicited:
            self._unsolicited.account(call)

    def _conclude(self, call: CallState) -> None:
        """Draw the consequences of a call's events, once they are safe."""
        if call.state == CLOSED:
            self.closed[str(call.outcome)] += 1
            self._unsolicited.forget(call.call_id)
            self.leases.release(call.call_id)
            self.calls.close(call)
        call.wake()

    def find(self, call_id: str) -> CallState | None:
        """A call that waits to begin, is open, or has ended; None if nobody remembers it."""
        return self.waiting.get(call_id) or self.begun(call_id)

    def begun(self, call_id: str) -> CallState | None:
        """A call that has begun, however long ago it was closed; None if it is not known."""
        return self.calls.get(call_id) or self.recall(call_id)

    def recall(self, call_id: str) -> CallState | None:
        """A closed call that only the journal still knows; None if it does not know it either."""
        row = self.journal.call(call_id)
        return None if row is None else CallState.read(row)

    def resume(self, call_id: str) -> ResumePoint:
        """The point from which a receiver resumes a call."""
        call = self.calls.get(call_id)
        if call is not None:
            return ResumePoint(
                delivered=call.last_seq,
                closed=call.state == CLOSED,
                instance=call.instance,
                unsolicited=call.unsolicited,
            )
        row = self.journal.call(call_id)
        return ResumePoint(delivered=row.last_seq, closed=row.closed) if row else ResumePoint(unsolicited=True)

    def _call_of(self, event: ToolEvent) -> CallState | None:
        """The call of an event, which is taken in if nothing is known of it; None if the event is to be ignored."""
        call = self.calls.get(event.call_id)
        if call is not None or self.journal.call(event.call_id) is not None:
            return call  # None for a closed call that only the journal still knows: its events come too late
        call = None if len(self.calls.open) >= MAX_OPEN else self._unsolicited.admit(event)
        if call is None:
            _log.warning("more open calls than can be looked after; event of call %r ignored", event.call_id)
            return None
        call.number = self._next_number()
        self.leases.grant(call.call_id, call.resources)
        self.calls.add(call)
        return call


@dataclass(slots=True)
class _Folded:
    """The outcome of folding events that change their calls, until the journal has them."""

    taken: list[ToolEvent] = field(default_factory=list)
    """The events that are journalled."""
    unjournalled: list[tuple[int, ToolEvent]] = field(default_factory=list)
    """The others, each with the offset behind which it comes."""
    touched: dict[str, tuple[CallState, CallState]] = field(default_factory=dict)
    """The calls of the events by id, each with itself as it was before."""
    changed: dict[str, CallState] = field(default_factory=dict)
    """Those of which more than the newest text is new, by id."""

    def undo(self) -> None:
        """Put the calls back as they were: the events are to come again."""
        for call, before in self.touched.values():
            call.restore(before)


def _lasting(events: Sequence[ToolEvent]) -> Sequence[ToolEvent]:
    """The events that leave a trace in their calls, out of a batch that changes no call's state: the newest of each
    type and call."""
    if len(events) == 1:
        return events
    newest = {(event.call_id, event.type): event for event in events}
    return sorted(newest.values(), key=lambda event: event.seq)
