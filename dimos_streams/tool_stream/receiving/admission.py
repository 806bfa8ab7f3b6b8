"""Which events a receiver reads and believes: those of the instance that runs their call."""

from __future__ import annotations

import logging

from dimos_streams import clock
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.receiving.inflow import Inflow
from dimos_streams.tool_stream.wire import may_be_of

_log = LimitedLog(logging.getLogger(__name__))
_seldom = LimitedLog(logging.getLogger(__name__), period_s=10.0)

_STRANGERS_EVENTS = (200.0, 2000.0)
"""Events of calls that nobody here has begun, in a second, and at once, as long as it is not known whose they are;
one counts once, and once for each kilobyte. What is too much is not decoded, and asked for again when a heartbeat
names its call."""
_READ_REFUSED = 20.0
"""Events a second in the name of somebody else's call that are read nevertheless, to find out who sends them."""
NOTED_S = 60.0
_MAX_SHOWN = 50


class Admission:
    """Turns away what is no event of its call, if possible before it is decoded. Use from the bus's loop only."""

    def __init__(self) -> None:
        self.foreign = 0
        """Events in the name of a call of somebody else."""
        self._strangers_events = Allowance(*_STRANGERS_EVENTS)
        self._read_refused = Allowance(_READ_REFUSED, _READ_REFUSED)
        self._note, self._noted_until = "", 0.0

    def may_read(self, stream: Inflow, data: bytes) -> bool:
        """Whether to decode an event: not what can't be its call's, nor too many of calls that nobody knows."""
        if not may_be_of(data, stream.instance):
            if self._read_refused.take():
                return True
            self.foreign += 1
            return False
        if stream.stranger and not stream.instance and not self._strangers_events.take(1 + len(data) / 1024):
            _log.warning("more events of calls that nobody has begun than can be read")
            return False
        return True

    def refuse(self, stream: Inflow, event: ToolEvent) -> None:
        """Count and log an event that another instance than its call's has sent.

        As long as it is not known whose call it is, that may be its module's new instance, believed a moment later.
        """
        self.foreign += 1
        if not stream.instance:
            return
        self._noted_until = clock.monotonic() + NOTED_S
        of = f"call {event.call_id[:_MAX_SHOWN]} is of instance {stream.instance!r}"
        self._note = f"{of}; events of instance {event.instance[:_MAX_SHOWN]!r} in it are not believed"
        _seldom.warning(
            "call %s is of instance %r; its event %d in the name of instance %r is not believed",
            event.call_id,
            stream.instance,
            event.seq,
            event.instance,
        )

    def note(self) -> str:
        """For operators: whose call somebody else has written on in the last ``NOTED_S``, empty for none."""
        return self._note if clock.monotonic() < self._noted_until else ""
