"""The events of calls out of a log: each once, each call's in order, as a bridge hands them on.

On the bus an event may come twice, or late, because it was asked for again. One that is missing is waited for as long
as a bridge would; then a ``gap`` stands for it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from dimos_streams.tool_stream.event import ToolEvent

PATIENCE_US = 5_000_000
"""The time by which an event may be later than its successor; of a bridge's patience, all of it."""
_MAX_WAITING = 10_000
_MAX_ENDED = 100_000


@dataclass(slots=True)
class _Stream:
    """One call's events so far."""

    next_seq: int = 1
    waiting: dict[int, ToolEvent] = field(default_factory=dict)
    since: int = 0
    """When the oldest of those that wait came, µs by the log."""


class InOrder:
    """Takes events as they stand in a log. Bounded: where too many wait, none is waited for any longer."""

    def __init__(self) -> None:
        self.gaps = 0
        """Events that are not in the log."""
        self.repeated = 0
        """Events that came again."""
        self._streams: dict[str, _Stream] = {}
        self._behind: dict[str, None] = {}
        """The calls of which events wait."""
        self._waiting = 0
        self._ended: OrderedDict[str, None] = OrderedDict()

    def take(self, utime: int, event: ToolEvent) -> list[ToolEvent]:
        """The events that are due now, at a time of the log."""
        found = self.due(utime)
        if event.call_id in self._ended:
            self.repeated += 1
            return found
        stream = self._streams.setdefault(event.call_id, _Stream())
        if event.seq < stream.next_seq or event.seq in stream.waiting:
            self.repeated += 1
        else:
            self._keep(stream, event, utime)
            found += self._ready(event.call_id, stream)
            if self._waiting > _MAX_WAITING:
                found += self.rest()
        return found

    def due(self, utime: int) -> list[ToolEvent]:
        """Those that nothing is waited for any more at a time of the log, behind their gaps."""
        late = [call for call in self._behind if utime - self._streams[call].since > PATIENCE_US]
        return [event for call in late for event in self._over_the_gap(call)]

    def rest(self) -> list[ToolEvent]:
        """All that still wait, at the end of the log."""
        found = []
        while self._behind:
            found += self._over_the_gap(next(iter(self._behind)))
        return found

    def _keep(self, stream: _Stream, event: ToolEvent, utime: int) -> None:
        if not stream.waiting:
            stream.since = utime
        stream.waiting[event.seq] = event
        self._waiting += 1

    def _ready(self, call_id: str, stream: _Stream) -> list[ToolEvent]:
        """The events without a hole before them."""
        found = []
        while (event := stream.waiting.pop(stream.next_seq, None)) is not None:
            found.append(event)
            stream.next_seq += 1
        self._waiting -= len(found)
        if stream.waiting:
            self._behind[call_id] = None
        else:
            self._behind.pop(call_id, None)
        if found and found[-1].type == "close":
            self._end(call_id)
        return found

    def _over_the_gap(self, call_id: str) -> list[ToolEvent]:
        stream = self._streams[call_id]
        first = stream.waiting[min(stream.waiting)]
        self.gaps += first.seq - stream.next_seq
        gap = _gap(first, stream.next_seq)
        stream.next_seq = first.seq
        return [gap, *self._ready(call_id, stream)]

    def _end(self, call_id: str) -> None:
        stream = self._streams.pop(call_id)
        self._waiting -= len(stream.waiting)
        self._behind.pop(call_id, None)
        self._ended[call_id] = None
        if len(self._ended) > _MAX_ENDED:
            self._ended.popitem(last=False)


def _gap(following: ToolEvent, from_seq: int) -> ToolEvent:
    to_seq = following.seq - 1
    return ToolEvent(
        utime=following.utime,
        call_id=following.call_id,
        seq=to_seq,
        type="gap",
        module=following.module,
        skill=following.skill,
        caller=following.caller,
        text=f"events {from_seq} to {to_seq} of this call are not in the recording",
        data={"from_seq": from_seq, "to_seq": to_seq},
    )
