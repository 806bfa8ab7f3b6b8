"""The state of one call in a receiver: its stage, whose it is, what was delivered of it and what is missing."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from dimos_streams import clock
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.receiving.reorder_buffer import ReorderBuffer
from dimos_streams.tool_stream.wire.unpacking import EventUnpacker


class CallStage(enum.Enum):
    """The stage of a call in a receiver. A call goes forward only::

        NAMED ── an event ──> OPEN ── its close, or finish() ──> CLOSED

    It begins as NAMED, unless the receiver's ``resume`` knows better.
    """

    NAMED = "named"
    """A heartbeat may have named it, and nothing else has come: it is forgotten when requests have no answer."""
    OPEN = "open"
    """Its events are put in order and delivered; missing ones are asked for, and in the end given up as a gap."""
    CLOSED = "closed"
    """Its close was delivered, or somebody else closes it: all that still comes is acknowledged and dropped."""


NAMED, OPEN, CLOSED = CallStage  # looked up several times for each event, which is slow on an enum's class


class Names(NamedTuple):
    """The names that say whose call it is."""

    module: str
    skill: str
    caller: str

    @classmethod
    def of(cls, event: ToolEvent) -> Names:
        """Return the names in one of its events."""
        return cls(event.module, event.skill, event.caller)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """The point at which a receiver that was not there before stands in a call."""

    delivered: int = 0
    closed: bool = False
    instance: str = ""
    """The instance whose call it is; empty if that is not known."""
    unsolicited: bool = False
    """True if the call is not known to have been begun from here: what it costs is bounded."""


@dataclass(slots=True, kw_only=True, eq=False)
class ReceivedCall:
    """One call, as its receiver sees it."""

    call_id: str
    unsolicited: bool
    """True if it is not known to have been begun from here: events in its name may be all that there is of it."""
    pending: ReorderBuffer
    """The events that came too early."""
    unpacker: EventUnpacker
    stage: CallStage
    delivered: int
    """The seq of the last event that was delivered or given up."""
    highest: int
    """The largest seq that is known to exist."""
    acked: int = 0
    """The seq up to which it was acknowledged."""

    instance: str
    """The start of its module that opened it, as its events say; nobody else's events are taken."""
    presumed_instance: str = ""
    """The instance that was last heard of it; requests go to it until it is known whose call it is."""
    module: str = ""
    """The module that named it in a heartbeat."""
    names: Names | None = None
    """The names in its events; the events themselves are not kept, because they are large."""

    heard_at: float = float("-inf")
    """The time on the loop's clock at which an event of its instance last came, delivered or not."""
    named_at: float = float("-inf")
    """The time on the loop's clock at which a heartbeat of its instance last named it."""
    attempts: int = 0
    """Number of requests for its missing events since something was delivered."""
    answers_unreadably: bool = False
    """True if an event that can't be read has come since something was delivered: what is asked for may be that."""
    nack_at: float | None = None
    """The time on the loop's clock of the next request; None while nothing is missing."""

    def assign(self, instance: str) -> int:
        """Make it the call of an instance, for good. Drop what others have sent of it, and return how many events
        those were; what others said of its last seq does not count either."""
        self.instance = instance
        dropped = self.pending.drop_others(instance)
        if dropped or self.presumed_instance not in ("", instance):
            self.highest = self.pending.last or self.delivered
        return dropped

    def gap(self, to_seq: int) -> ToolEvent:
        """Return the event that says that all up to ``to_seq`` is lost."""
        first, names = self.delivered + 1, self._names()
        return ToolEvent(
            utime=clock.utime(),
            call_id=self.call_id,
            seq=to_seq,
            type="gap",
            module=names.module,
            skill=names.skill,
            caller=names.caller,
            text=f"events {first} to {to_seq} of this call are lost",
            data={"from_seq": first, "to_seq": to_seq},
        )

    def missing(self, limit: int) -> list[tuple[int, int]]:
        """Return the first ranges of seqs that are known to exist and have not come, at most ``limit`` and one."""
        ranges: list[tuple[int, int]] = []
        expected = self.delivered + 1
        for seq in self.pending:
            if seq > expected:
                ranges.append((expected, seq - 1))
                if len(ranges) >= limit:
                    return ranges
            expected = seq + 1
        if self.highest >= expected:
            ranges.append((expected, self.highest))
        return ranges

    def _names(self) -> Names:
        """Return the names in its events, delivered or kept; if there are none, what its heartbeat says."""
        if self.names is None and (first := self.pending.first) is not None:
            return Names.of(self.pending.read(first))
        return self.names or Names(self.module, "", "")
