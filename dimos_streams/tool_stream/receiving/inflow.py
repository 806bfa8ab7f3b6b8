"""The state of each call in a receiver: what is delivered, what came too early, what is missing; within bounds."""

from __future__ import annotations

import bisect
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dimos_streams import clock
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.wire.unpacking import EventUnpacker

MAX_PENDING = 2048
"""Maximum number of events of one call that are kept ahead of a missing one; more are dropped and asked for later."""
PENDING_BYTES = 2 * 1024 * 1024
"""Maximum size that these may have together, in bytes."""
ALL_PENDING_BYTES = 4 * 1024 * 1024
"""Maximum size of those of all calls, in bytes."""
UNSOLICITED_PENDING_BYTES = 512 * 1024
"""Maximum size, in bytes, of those of unsolicited calls, besides, so that invented calls can't push out real ones;
each of these calls may have a fourth of it."""
DEPUTY = "\0deputy"
"""The instance of what was said in the stead of a call's module; no instance on the bus can have this name."""
MAX_OPEN = 2048
MAX_CLOSED = 1024
MAX_UNSOLICITED_OPEN, MAX_UNSOLICITED_CLOSED = 1024, 256
"""Maximum numbers of unsolicited calls, besides, so that invented calls can't push out real ones."""
MAX_CLAIMED = 512
"""Maximum number of calls that heartbeats name and of which nothing else has been heard."""


class _Early(NamedTuple):
    """An event that came too early, as its bytes: Python's objects for its JSON may be twenty times as large."""

    instance: str
    """The instance as it is believed: ``DEPUTY``, or the one that the bytes name."""
    packed: bytes


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


@dataclass(slots=True)
class Inflow:
    """One call, as its receiver sees it."""

    delivered: int
    closed: bool
    instance: str = ""
    """The start of its module that opened it, as its events say; nobody else's events are taken."""
    unsolicited: bool = False
    """True if it is not known to have been begun from here: events in its name may be all that there is of it."""
    claimed_by: str = ""
    """The instance that was last heard of it; it is asked until it is known whose call it is."""
    highest: int = 0
    pending: dict[int, _Early] = field(default_factory=dict)
    """Events that came too early, by seq."""
    kept_bytes: int = 0
    heard_at: float = float("-inf")
    """The time on the loop's clock at which an event of its instance last came, delivered or not."""
    named_at: float = float("-inf")
    """The time on the loop's clock at which a heartbeat of its instance last named it."""
    acked: int = 0
    attempts: int = 0
    nack_at: float | None = None
    module: str = ""
    names: Names | None = None
    """The names in its events; the events themselves are not kept, because they are large."""
    unpacker: EventUnpacker = field(default_factory=EventUnpacker)
    _order: list[int] = field(default_factory=list)

    def keep(self, event: ToolEvent, packed: bytes) -> None:
        """Keep an event that came too early, with its bytes."""
        self.pending[event.seq] = _Early(event.instance, packed)
        bisect.insort(self._order, event.seq)
        self.kept_bytes += len(packed)

    def pop_pending(self, seq: int) -> ToolEvent | None:
        """Remove and return an event that was kept; None if there is none."""
        if seq not in self.pending:
            return None
        event = self._read(seq)
        self._forget(seq)
        return event

    def _read(self, seq: int) -> ToolEvent:
        instance, packed = self.pending[seq]
        return replace(self.unpacker.unpack(packed), seq=seq, instance=instance)

    def _forget(self, seq: int) -> None:
        self.kept_bytes -= len(self.pending.pop(seq).packed)
        del self._order[bisect.bisect_left(self._order, seq)]

    def drop_pending(self) -> None:
        """Forget all that was kept."""
        self.pending.clear()
        self._order.clear()
        self.kept_bytes = 0

    def bind(self, instance: str) -> int:
        """Belong to an instance from now on; return how many events of others were kept, and are not any more."""
        self.instance = instance
        others = [seq for seq, early in self.pending.items() if early.instance not in (instance, DEPUTY)]
        for seq in others:
            self._forget(seq)
        if others or self.claimed_by not in ("", instance):
            self.highest = self._order[-1] if self._order else self.delivered
        return len(others)

    def known(self) -> Names:
        """Return whose call it is, as far as anything says."""
        first = self.first_pending()
        return self.names or (Names.of(self._read(first)) if first is not None else Names(self.module, "", ""))

    def gap(self, call_id: str, to_seq: int) -> ToolEvent:
        """Return the event that says that all up to ``to_seq`` is lost."""
        first, known = self.delivered + 1, self.known()
        return ToolEvent(
            utime=clock.utime(),
            call_id=call_id,
            seq=to_seq,
            type="gap",
            module=known.module,
            skill=known.skill,
            caller=known.caller,
            text=f"events {first} to {to_seq} of this call are lost",
            data={"from_seq": first, "to_seq": to_seq},
        )

    def first_pending(self) -> int | None:
        """Return the seq of the first event that was kept, or None."""
        return self._order[0] if self._order else None

    def missing(self, limit: int) -> list[tuple[int, int]]:
        """Return the first ranges of seqs that are known to exist and have not come."""
        ranges: list[tuple[int, int]] = []
        expected = self.delivered + 1
        for seq in self._order:
            if seq > expected:
                ranges.append((expected, seq - 1))
                if len(ranges) >= limit:
                    return ranges
            expected = seq + 1
        if self.highest >= expected:
            ranges.append((expected, self.highest))
        return ranges


class Inflows:
    """The calls by id. Those that have closed longest ago are forgotten first, then those of which only the name is
    known, then those silent for longest: ``ToolStreamReceiver``'s ``resume`` says where they stand."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Inflow] = OrderedDict()
        self._closed: OrderedDict[str, Inflow] = OrderedDict()
        self._unsolicited_open: OrderedDict[str, Inflow] = OrderedDict()
        self._unsolicited_closed: OrderedDict[str, Inflow] = OrderedDict()
        self._claimed: OrderedDict[str, Inflow] = OrderedDict()
        self._kept = {False: 0, True: 0}
        """The size, in bytes, of the events that came too early, of unsolicited calls (True) and of others."""

    def __len__(self) -> int:
        return sum(map(len, self._tables()))

    @property
    def kept_bytes(self) -> int:
        """The size of all events that came too early."""
        return sum(self._kept.values())

    def get(self, call_id: str) -> Inflow | None:
        """Return one call, or None if it is not known."""
        if (found := self._open.get(call_id)) is not None:  # as most are, and each event asks
            return found
        return next((table[call_id] for table in self._tables() if call_id in table), None)

    def _tables(self) -> tuple[OrderedDict[str, Inflow], ...]:
        return self._open, self._closed, self._unsolicited_open, self._unsolicited_closed, self._claimed

    def claim(self, call_id: str, inflow: Inflow) -> None:
        """Take in a call that a heartbeat names; there must be ``room_for_claims``."""
        self._claimed[call_id] = inflow

    def forget_claim(self, call_id: str) -> bool:
        """Forget a call of which nothing has come but its name; return whether it is one."""
        return self._claimed.pop(call_id, None) is not None

    @property
    def room_for_claims(self) -> bool:
        """True if another call of which only the name is known may be taken in."""
        return len(self._claimed) < MAX_CLAIMED

    def note_heard(self, call_id: str, inflow: Inflow) -> None:
        """Note that an event of a call has come, which is now among the open calls, or the closed ones."""
        opened = self._unsolicited_open if inflow.unsolicited else self._open
        if not inflow.closed and opened.get(call_id) is inflow:  # as most are, and each event asks
            opened.move_to_end(call_id)
            return
        self._claimed.pop(call_id, None)
        if not inflow.closed:
            self._put(opened, MAX_UNSOLICITED_OPEN if inflow.unsolicited else MAX_OPEN, call_id, inflow)
            return
        opened.pop(call_id, None)
        if inflow.unsolicited:
            self._put(self._unsolicited_closed, MAX_UNSOLICITED_CLOSED, call_id, inflow)
        else:
            self._put(self._closed, MAX_CLOSED, call_id, inflow)

    def keep(self, inflow: Inflow, event: ToolEvent, packed: bytes) -> None:
        """Keep an event that came too early, if there is room."""
        if len(inflow.pending) < MAX_PENDING and len(packed) <= self._room(inflow):
            inflow.keep(event, packed)
            self._kept[inflow.unsolicited] += len(packed)

    def _room(self, inflow: Inflow) -> int:
        if inflow.unsolicited:
            each, of_all = UNSOLICITED_PENDING_BYTES // 4, UNSOLICITED_PENDING_BYTES
        else:
            each, of_all = PENDING_BYTES, ALL_PENDING_BYTES
        return min(each - inflow.kept_bytes, of_all - self._kept[inflow.unsolicited])

    def pop_pending(self, inflow: Inflow, seq: int) -> ToolEvent | None:
        """Remove and return an event that was kept; None if there is none."""
        before = inflow.kept_bytes
        event = inflow.pop_pending(seq)
        self._kept[inflow.unsolicited] += inflow.kept_bytes - before
        return event

    def empty(self, inflow: Inflow) -> None:
        """Forget what was kept of a call."""
        self._kept[inflow.unsolicited] -= inflow.kept_bytes
        inflow.drop_pending()

    def bind(self, inflow: Inflow, instance: str) -> int:
        """See ``Inflow.bind``."""
        before = inflow.kept_bytes
        others = inflow.bind(instance)
        self._kept[inflow.unsolicited] += inflow.kept_bytes - before
        return others

    def _put(self, table: OrderedDict[str, Inflow], limit: int, call_id: str, inflow: Inflow) -> None:
        table[call_id] = inflow
        table.move_to_end(call_id)
        while len(table) > limit:
            _, oldest = table.popitem(last=False)
            self.empty(oldest)
            oldest.nack_at = None
