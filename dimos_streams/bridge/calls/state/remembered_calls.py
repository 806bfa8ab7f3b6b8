"""The calls that a bridge remembers: all that are open, and the newest closed ones within a bound."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from operator import attrgetter

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.tool_stream.family import ancestors_of

KEEP_CLOSED_BYTES = 4 * 1024 * 1024
"""Maximum size of the texts, arguments and results of closed calls, in bytes; forgotten ones are in the journal."""
_UNSOLICITED_SHARE = 4
"""Divisor of both bounds for unsolicited calls, which are kept apart so that invented ones can't push out others."""


class ClosedCalls:
    """The newest closed calls, within a number and a size."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self.calls: OrderedDict[str, CallState] = OrderedDict()
        self._most, self._most_bytes = most, most_bytes
        self._sizes: dict[str, int] = {}
        self._bytes = 0

    def add(self, call: CallState) -> None:
        """Remember a call, and forget the oldest ones that there is no room for."""
        size = self._sizes[call.call_id] = call.size
        self.calls[call.call_id] = call
        self._bytes += size
        while len(self.calls) > self._most or self._bytes > self._most_bytes:
            oldest, _ = self.calls.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)


class Calls:
    """The calls that the broker remembers: all open ones and the newest closed ones."""

    def __init__(self, keep_closed: int = 1000) -> None:
        self._open: dict[str, CallState] = {}
        self._closed = ClosedCalls(keep_closed, KEEP_CLOSED_BYTES)
        self._of_agents = ClosedCalls(keep_closed, KEEP_CLOSED_BYTES)
        """Apart from the others: agents take these calls back, however often somebody has asked how they are."""
        self._unsolicited = ClosedCalls(keep_closed // _UNSOLICITED_SHARE, KEEP_CLOSED_BYTES // _UNSOLICITED_SHARE)
        self._kept = (self._closed, self._of_agents, self._unsolicited)

    def __iter__(self) -> Iterator[CallState]:
        """Iterate over the calls, oldest first."""
        closed = (call for kept in self._kept for call in kept.calls.values())
        return iter(sorted([*closed, *self._open.values()], key=attrgetter("position")))

    def get(self, call_id: str) -> CallState | None:
        """One call, None if it is not remembered."""
        if call_id in self._open:
            return self._open[call_id]
        return next((kept.calls[call_id] for kept in self._kept if call_id in kept.calls), None)

    def add(self, call: CallState) -> None:
        """Remember a call."""
        if call.state != CLOSED:
            self._open[call.call_id] = call
        else:
            kept = self._unsolicited if call.unsolicited else self._of_agents if call.by_agent else self._closed
            kept.add(call)

    def close(self, call: CallState) -> None:
        """Put a call that has closed among the closed ones."""
        self._open.pop(call.call_id, None)
        self.add(call)

    @property
    def open(self) -> list[CallState]:
        """The calls that are not closed, oldest first."""
        return list(self._open.values())


def chain(calls: Calls, call: CallState) -> str:
    """The skills that have led to a call, as people read them: ``tidy_up → go_to``."""
    above = (calls.get(call_id) for call_id in reversed(ancestors_of(call.call_id)))
    return " → ".join([*(each.skill if each is not None else "?" for each in above), call.skill])
