"""The events of calls out of a log: each once, each call's in order, as a bridge hands them on.

On the bus an event may come twice, or late, because it was asked for again. One that is missing is waited for as long
as a bridge would; then a ``gap`` stands for it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.tool_stream.event import ToolEvent

MAX_LATENESS_US = 5_000_000
"""The time by which an event may be later than its successor, which is all the time that a bridge waits for one."""
_MAX_WAITING = 10_000
_MAX_OPEN = 100_000
_MAX_ENDED = 100_000


@dataclass(slots=True)
class _CallStream:
    """The events of one call, of which some wait for an earlier one."""

    next_seq: int
    since: int
    """The time at which the event behind the hole came, µs by the log."""
    waiting: dict[int, tuple[int, ToolEvent]] = field(default_factory=dict)
    """The events that wait by their numbers, each with the time at which it came."""
    numbers: list[int] = field(default_factory=list)
    """A heap of the numbers of the waiting events, and of some that wait no more."""

    def add(self, utime: int, event: ToolEvent) -> None:
        """Have an event wait that came at a time of the log."""
        self.waiting[event.seq] = utime, event
        heapq.heappush(self.numbers, event.seq)

    def first(self) -> tuple[int, ToolEvent]:
        """The first one that waits, and when it came."""
        while self.numbers[0] not in self.waiting:
            heapq.heappop(self.numbers)
        return self.waiting[self.numbers[0]]


class InOrder:
    """Takes events as they stand in a log. Bounded: where too many wait, none is waited for any longer, and of too
    many open calls the one that has said nothing for longest is forgotten. If it goes on, that is behind a gap."""

    def __init__(self) -> None:
        self.gaps = 0
        """The number of events that are not in the log."""
        self.repeated = 0
        """The number of events that came again."""
        self._whole = NewestEntries[str, int](_MAX_OPEN)
        """The number of the next event of open calls of which none waits; the call that spoke last stands last."""
        self._behind: dict[str, _CallStream] = {}
        """The calls of which events wait, in the order in which that began."""
        self._since: list[tuple[int, str]] = []
        """A heap of the times since which the calls behind wait, and of some since which they wait no more."""
        self._waiting = 0
        self._ended = NewestEntries[str, None](_MAX_ENDED)

    def take(self, utime: int, event: ToolEvent) -> list[ToolEvent]:
        """The events that are due now, at a time of the log."""
        found = self.due(utime)
        call = event.call_id
        if call in self._ended:
            self.repeated += 1
            return found
        stream = self._behind.get(call) or _CallStream(self._whole.pop(call, 1), utime)
        if event.seq < stream.next_seq or event.seq in stream.waiting:
            self.repeated += 1
        else:
            stream.add(utime, event)
            self._waiting += 1
        found += self._ready(call, stream)
        if self._waiting > _MAX_WAITING:
            found += self.rest()
        return found

    def due(self, utime: int) -> list[ToolEvent]:
        """Return the events whose predecessors are no longer waited for at a time of the log, behind their gaps."""
        found = []
        while self._since and utime - self._since[0][0] > MAX_LATENESS_US:
            since, call = heapq.heappop(self._since)
            stream = self._behind.get(call)
            if stream is not None and stream.since == since:
                found += self._over_the_gap(call, stream)
        return found

    def rest(self) -> list[ToolEvent]:
        """Return all events that still wait, at the end of the log."""
        found = []
        while self._behind:
            found += self._over_the_gap(*next(iter(self._behind.items())))
        return found

    def _ready(self, call: str, stream: _CallStream) -> list[ToolEvent]:
        """The events without a hole before them."""
        found = []
        while (arrived := stream.waiting.pop(stream.next_seq, None)) is not None:
            found.append(arrived[1])
            stream.next_seq += 1
        self._waiting -= len(found)
        if found and found[-1].type == "close":
            self._end(call, stream)
        elif stream.waiting:
            if found or call not in self._behind:
                self._wait(call, stream)
        else:
            self._behind.pop(call, None)
            self._whole[call] = stream.next_seq
        return found

    def _wait(self, call: str, stream: _CallStream) -> None:
        stream.since, _ = stream.first()
        self._behind[call] = stream
        heapq.heappush(self._since, (stream.since, call))
        if len(self._since) > 2 * _MAX_WAITING:
            self._since = [(each.since, name) for name, each in self._behind.items()]
            heapq.heapify(self._since)

    def _over_the_gap(self, call: str, stream: _CallStream) -> list[ToolEvent]:
        _, first = stream.first()
        self.gaps += first.seq - stream.next_seq
        gap = _gap(first, stream.next_seq)
        stream.next_seq = first.seq
        return [gap, *self._ready(call, stream)]

    def _end(self, call: str, stream: _CallStream) -> None:
        self._waiting -= len(stream.waiting)
        self._behind.pop(call, None)
        self._ended[call] = None


def _gap(following: ToolEvent, from_seq: int) -> ToolEvent:
    to_seq = following.seq - 1
    return replace(
        following,
        seq=to_seq,
        type="gap",
        text=f"events {from_seq} to {to_seq} of this call are not in the recording",
        data={"from_seq": from_seq, "to_seq": to_seq},
        instance="",
    )
