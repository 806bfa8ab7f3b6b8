"""The calls that a receiver knows, by id. Both the number of each stage and the bytes of all are bounded."""

from __future__ import annotations

from collections import OrderedDict

from dimos_streams.tool_stream.receiving.received_call import CLOSED, NAMED, OPEN, ReceivedCall, ResumePoint
from dimos_streams.tool_stream.receiving.reorder_buffer import ByteBudget, ReorderBuffer
from dimos_streams.tool_stream.wire.unpacking import EventUnpacker

MAX_OPEN = 2048
MAX_CLOSED = 1024
MAX_UNSOLICITED_OPEN, MAX_UNSOLICITED_CLOSED = 1024, 256
"""Maximum numbers of unsolicited calls, besides, so that invented calls can't push out real ones."""
MAX_NAMED = 512
"""Maximum number of calls that heartbeats name and of which nothing else has been heard."""
PENDING_BYTES = 2 * 1024 * 1024
"""Maximum size of the events of one call that came too early, in bytes."""
ALL_PENDING_BYTES = 4 * 1024 * 1024
"""Maximum size of those of all calls, in bytes."""
UNSOLICITED_PENDING_BYTES = 512 * 1024
"""Maximum size, in bytes, of those of unsolicited calls, besides, so that invented calls can't push out real ones;
each of these calls may have a fourth of it."""


class _Calls(OrderedDict[str, ReceivedCall]):
    """Calls of one stage by id, the one that was silent for longest first."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit


class ReceivedCalls:
    """The calls of a receiver. Where there are too many of a stage, the one that was silent for longest is forgotten:
    ``ToolStreamReceiver``'s ``resume`` says where it stands if it is heard again. Names alone push nothing out."""

    def __init__(self) -> None:
        self._named = _Calls(MAX_NAMED)
        self._open, self._unsolicited_open = _Calls(MAX_OPEN), _Calls(MAX_UNSOLICITED_OPEN)
        self._closed, self._unsolicited_closed = _Calls(MAX_CLOSED), _Calls(MAX_UNSOLICITED_CLOSED)
        self._all = self._open, self._closed, self._unsolicited_open, self._unsolicited_closed, self._named
        self._budget = ByteBudget(ALL_PENDING_BYTES, PENDING_BYTES)
        self._unsolicited_budget = ByteBudget(UNSOLICITED_PENDING_BYTES, UNSOLICITED_PENDING_BYTES // 4)

    def __len__(self) -> int:
        return sum(map(len, self._all))

    @property
    def pending_bytes(self) -> int:
        """The size of all events that came too early."""
        return self._budget.used + self._unsolicited_budget.used

    @property
    def has_room_for_names(self) -> bool:
        """True if another call of which only the name is known may be added."""
        return len(self._named) < self._named.limit

    def get(self, call_id: str) -> ReceivedCall | None:
        """Return one call, or None if it is not known."""
        if (found := self._open.get(call_id)) is not None:  # as most are, and each event asks
            return found
        return next((calls[call_id] for calls in self._all if call_id in calls), None)

    def make(self, call_id: str, known: ResumePoint) -> ReceivedCall:
        """Return a call that is not in the table: most that are asked for are refused before they are added."""
        unpacker = EventUnpacker()
        budget = self._unsolicited_budget if known.unsolicited else self._budget
        return ReceivedCall(
            call_id=call_id,
            unsolicited=known.unsolicited,
            pending=ReorderBuffer(budget, unpacker),
            unpacker=unpacker,
            stage=CLOSED if known.closed else OPEN if known.delivered else NAMED,
            delivered=known.delivered,
            highest=known.delivered,
            instance=known.instance,
        )

    def add(self, call: ReceivedCall) -> None:
        """Have a call in the table, as the last one of its stage to be forgotten."""
        calls = self._of_stage(call)
        calls[call.call_id] = call
        calls.move_to_end(call.call_id)
        while len(calls) > calls.limit:
            _, oldest = calls.popitem(last=False)
            oldest.pending.clear()
            oldest.nack_at = None

    def heard(self, call: ReceivedCall) -> None:
        """Note that an event of a call has come."""
        if call.stage is NAMED:
            self._named.pop(call.call_id, None)
            call.stage = OPEN
        calls = self._of_stage(call)
        if call.call_id in calls:  # as most are, and each event asks
            calls.move_to_end(call.call_id)
        else:
            self.add(call)

    def close(self, call: ReceivedCall) -> None:
        """Note that nothing more of a call is delivered: drop what was kept of it, and ask for nothing."""
        self._of_stage(call).pop(call.call_id, None)
        call.stage, call.nack_at = CLOSED, None
        call.pending.clear()
        self.add(call)

    def forget_name(self, call: ReceivedCall) -> bool:
        """Forget a call of which nothing has come but its name; return whether it is one."""
        return self._named.pop(call.call_id, None) is not None

    def _of_stage(self, call: ReceivedCall) -> _Calls:
        if call.stage is OPEN:
            return self._unsolicited_open if call.unsolicited else self._open
        if call.stage is CLOSED:
            return self._unsolicited_closed if call.unsolicited else self._closed
        return self._named
