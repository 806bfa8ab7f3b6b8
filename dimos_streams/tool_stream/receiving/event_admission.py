"""Decides which events a receiver reads and believes: those of the instance that runs their call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from dimos_streams import clock
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.receiving.received_call import CLOSED, ReceivedCall
from dimos_streams.tool_stream.receiving.reorder_buffer import PROXY
from dimos_streams.tool_stream.signature import shown_instance
from dimos_streams.tool_stream.wire.layout import may_be_of

_log = LimitedLog(logging.getLogger(__name__))
_seldom = LimitedLog(logging.getLogger(__name__), period_s=10.0)

_UNSOLICITED_EVENTS = (200.0, 2000.0)
"""Maximum number of events of unsolicited calls, per second and at once, as long as it is not known
whose they are; an event counts once, and once more for each kilobyte. An event too many is not decoded, and is asked
for again when a heartbeat names its call."""
_READ_REFUSED = 20.0
"""Maximum number of events per second in the name of somebody else's call that are read all the same, to find out who
sends them."""
NOTED_S = 60.0
_MAX_SHOWN = 50
_MAX_REFUSED = 64
"""Maximum number of calls remembered of which something was refused while it is not known whose they are."""
_MAX_INSTANCES = 4
"""Maximum number of refused instances remembered for each of them."""


class EventAdmission:
    """The check that refuses events that are not by the instance that runs their call, if possible before they are
    decoded. Use from the bus's loop only."""

    def __init__(self, may_open: Callable[[ToolEvent], bool], proxy: Callable[[], str]) -> None:
        """Both are those of ``ToolStreamReceiver``: ``may_open`` says whether an event can be of the instance that
        runs its call, as long as that is not known; ``proxy`` returns the instance that may write on any call."""
        self._may_open = may_open
        self._proxy = proxy
        self._refused_of = NewestEntries[str, dict[str, int]](_MAX_REFUSED)
        """Refused instances, with the seq of an event of each, by the call whose instance is not known yet."""
        self.refused = 0
        """Number of events that were refused, because they were in the name of somebody else's call."""
        self._unsolicited_events = Allowance(*_UNSOLICITED_EVENTS)
        self._read_refused = Allowance(_READ_REFUSED, _READ_REFUSED)
        self._note, self._noted_until = "", 0.0

    def may_read(self, call: ReceivedCall, data: bytes) -> bool:
        """Return whether to decode an event: only a few that can't belong to their call, and a bounded number for
        unsolicited calls."""
        if not may_be_of(data, call.instance) and not self._may_be_by_proxy(data):
            if self._read_refused.take():
                return True
            self.refused += 1
            return False
        if call.unsolicited and not call.instance and not self._unsolicited_events.take(1 + len(data) / 1024):
            _log.warning("more events of calls that nobody has begun than can be read")
            return False
        return True

    def admitted(self, call: ReceivedCall, event: ToolEvent) -> ToolEvent | None:
        """Return an event of the instance that runs its call, or that may; None for one that is refused and counted.

        The instance of a proxy's event becomes ``PROXY``, so that the call is not taken for the proxy's own.
        """
        if call.instance:
            if event.instance == call.instance:
                return event
        elif call.stage is CLOSED or self._may_open(event):
            # Of a call that was closed before its instance was known nothing is delivered any more: its events are
            # acknowledged, whoever sends them, so that they are not sent again.
            return event
        if event.instance and event.instance == self._proxy():
            return replace(event, instance=PROXY)
        self._refuse(call, event)
        return None

    def assigned(self, call_id: str, instance: str) -> None:
        """Report the other instances whose events of a call were refused before it was known whose it is."""
        for other, seq in self._refused_of.pop(call_id, {}).items():
            if other != instance:
                self._report(call_id, instance, other, seq)

    def _refuse(self, call: ReceivedCall, event: ToolEvent) -> None:
        """Refuse an event. As long as it is not known whose call it is, the event may be of its module's new
        instance, believed a moment later, so it is reported only once that is known."""
        self.refused += 1
        if call.instance:
            self._report(event.call_id, call.instance, event.instance, event.seq)
            return
        refused = self._refused_of.setdefault(event.call_id, {})
        if len(refused) < _MAX_INSTANCES:
            refused.setdefault(event.instance, event.seq)

    def _report(self, call_id: str, instance: str, other: str, seq: int) -> None:
        self._noted_until = clock.monotonic() + NOTED_S
        instance, other = shown_instance(instance), shown_instance(other)
        of = f"call {call_id[:_MAX_SHOWN]} is of instance {instance!r}"
        self._note = f"{of}; events of instance {other[:_MAX_SHOWN]!r} in it are not believed"
        _seldom.warning(
            "call %s is of instance %r; its event %d in the name of instance %r is not believed",
            call_id,
            instance,
            seq,
            other,
        )

    def _may_be_by_proxy(self, data: bytes) -> bool:
        proxy = self._proxy()
        return bool(proxy) and may_be_of(data, proxy)

    def note(self) -> str:
        """Return a note for operators on the call that somebody else wrote on in the last ``NOTED_S``; empty for
        none."""
        return self._note if clock.monotonic() < self._noted_until else ""
