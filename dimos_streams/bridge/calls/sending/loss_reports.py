"""Reports of lost calls to their modules, which may run them all the same.

A module that can't be heard may hear well: it hears of each of its calls that was closed as lost.
"""

from __future__ import annotations

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.repeat import Repeat
from dimos_streams.bus import Bus
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCancel
from dimos_streams.tool_stream.protocol.channels import CANCELS

_MAX_LOST = 1000
"""Maximum number of lost calls that are reported at a time; beyond it, those reported for longest are dropped."""
_UNSOLICITED_OUTCOMES = 10.0
"""Messages a second about the ends of unsolicited calls: whoever forges calls, or heartbeats
that name them, must not make a flood of these."""


class LossReports:
    """Tells modules how calls of theirs have ended. Use from the bus's loop only."""

    def __init__(self, bus: Bus, times: int) -> None:
        """``times`` is how often a lost call is reported."""
        self._bus = bus
        self._times = times
        self._lost = NewestEntries[str, CallState](_MAX_LOST)
        """Calls that were closed as lost, while their modules are informed."""
        self._unsolicited_outcomes = Allowance(_UNSOLICITED_OUTCOMES, _UNSOLICITED_OUTCOMES)

    def report(self, call: CallState) -> None:
        """Report a call that was closed as lost, at once and again with each ``repeat`` that finds it due."""
        call.cancel = Repeat(clock.monotonic())
        self._lost[call.call_id] = call
        self._repeat(call, clock.monotonic())

    def report_once(self, call: CallState) -> None:
        """Report a closed call that a heartbeat names."""
        if self._may_send(call):
            self._send(call)

    def repeat(self, now: float) -> None:
        """Report lost calls again. A module that is heard is informed besides, whenever its heartbeats name one."""
        for call in list(self._lost.values()):
            self._repeat(call, now)

    def _repeat(self, call: CallState, now: float) -> None:
        if call.cancel is None or call.cancel.sent >= self._times:
            del self._lost[call.call_id]
        elif now >= call.cancel.at and self._may_send(call):
            call.cancel.take_turn(now)
            self._send(call)

    def _may_send(self, call: CallState) -> bool:
        return not call.unsolicited or self._unsolicited_outcomes.take()

    def _send(self, call: CallState) -> None:
        reason = f"the call is closed already, as {call.outcome}: {call.text}"
        message = SkillCancel(utime=clock.utime(), call_id=call.call_id, reason=reason, outcome=call.outcome or "")
        self._bus.publish(CANCELS, encode(message))
