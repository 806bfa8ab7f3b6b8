"""Remembers calls that are not open: closed, given up, or of a start that is in doubt."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from dimos_streams.agent.calls.open_call import CallContext, OpenCall
from dimos_streams.agent.missions.mission import Mission, going_on, release_all, retain_all
from dimos_streams.agent.policies.gates.base import Reviewer
from dimos_streams.common.newest_entries import NewestEntries

_REMEMBERED = 1000
_DOUBTS = 100
_DOUBT_S = 3.0
"""The time in s for which a call in doubt keeps its missions from being over."""


class ClosedCall(NamedTuple):
    """A call that is over, remembered for the calls that it has begun."""

    context: CallContext
    asked_to_end: str = ""
    """See ``OpenCall``."""


class CallMemory:
    """Bounded tables of the newest calls of each kind."""

    def __init__(self) -> None:
        self._closed = NewestEntries[str, ClosedCall](_REMEMBERED)
        self._given_up = NewestEntries[str, OpenCall](_DOUBTS)
        self._doubtful: deque[OpenCall] = deque(maxlen=_DOUBTS)
        self._held: dict[OpenCall, tuple[Mission, ...]] = {}
        """The missions that calls in doubt keep from being over."""

    @property
    def given_up(self) -> tuple[OpenCall, ...]:
        """The calls that were given up and may still run: their end has not been reported."""
        return tuple(self._given_up.values())

    def closed(self, call_id: str) -> ClosedCall | None:
        """The memory of a closed call, or None if the call is not known to have closed."""
        return self._closed.get(call_id)

    def remember_closed(self, call: OpenCall) -> None:
        """Remember a call that has closed."""
        self._closed[call.call_id] = ClosedCall(call.context, call.asked_to_end)

    def remember_recorded(self, reviewers: Mapping[str, Reviewer | None]) -> None:
        """Remember calls whose close is in a record, each with who has let it begin."""
        for call_id, reviewer in reviewers.items():
            self._closed[call_id] = ClosedCall(CallContext(reviewer=reviewer))

    def remember_given_up(self, call: OpenCall) -> None:
        """Remember a call that closes here, whatever it goes on to do."""
        self._given_up[call.call_id] = call

    def has_ended(self, call_id: str) -> None:
        """Note that a call that was given up runs no more; any other call is ignored."""
        self._given_up.pop(call_id, None)

    def doubt(self, call: OpenCall) -> None:
        """Remember a call whose starting was cancelled: it may begin all the same. It is work of its missions that go
        on until it is ``settled``, or a bounded time is over."""
        self._doubtful.append(call)
        if missions := going_on(call.missions):
            retain_all(missions)
            self._held[call] = missions
            call.set_timer(_DOUBT_S, partial(self.settled, call))

    def settled(self, call: OpenCall) -> None:
        """Note that a call in doubt keeps its missions going no longer; twice is fine."""
        call.stop_timer()
        release_all(self._held.pop(call, ()))

    def claim_doubtful(self, call: OpenCall) -> OpenCall | None:
        """Return the call in doubt that this one turns out to be, and forget it; None if it is not one of
        them."""
        for doubtful in self._doubtful:
            if (doubtful.skill, doubtful.arguments) == (call.skill, call.arguments):
                self._doubtful.remove(doubtful)
                return doubtful
        return None

    def stop(self) -> None:
        """Wait for no call in doubt any more; its missions are left as they are. Twice is fine."""
        for call in self._held:
            call.stop_timer()
        self._held.clear()
