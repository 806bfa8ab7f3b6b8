"""Asks modules to begin and to end calls, until they do."""

from __future__ import annotations

from dimos_streams import clock
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.sending.loss_reports import LossReports
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED, OPEN, REQUESTED
from dimos_streams.bridge.calls.state.repeat import Repeat
from dimos_streams.bus import Bus
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import CallRejectedError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall, SkillCancel
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS
from dimos_streams.tool_stream.protocol.close_data import STOPPED

MOST_CANCELS = 20
"""Number of times that a cancel is sent, in the end every 0.5 s; the skill may take longer to end."""


def may_ask_again(directory: ModuleDirectory, call: CallState) -> bool:
    """Return whether a module may be asked once more for a call: in time where that is limited, and if it is known
    who would begin it. Not before a module is introduced does a bridge that has come back know whether a call that it
    has taken over is a motion that a dead instance may have begun."""
    if call.begin_by is not None and clock.steady() > call.begin_by:
        return False
    return bool(call.asked) or directory.is_introduced(call.module)


class CallSender:
    """Begins calls, and sends what their modules have to know; the watchdog has it repeated."""

    def __init__(self, bus: Bus, ledger: Ledger) -> None:
        self._bus = bus
        self._ledger = ledger
        self.losses = LossReports(bus, MOST_CANCELS)

    def begin(self, call: CallState) -> None:
        """Enter a call that may begin, and ask its module to run it. Raises ``CallRejectedError`` if it is too late
        for that."""
        if call.begin_by is not None and clock.steady() > call.begin_by:
            raise CallRejectedError(f"the command to call {call.skill!r} expired before the call could begin")
        call.requested_utime = clock.utime()
        call.since = clock.monotonic()
        self._ledger.begin(call)
        self.request(call)

    def request(self, call: CallState) -> None:
        """Ask a call's module to run it. A request that is repeated has the time of the first, and none has one from
        before the start of the instance that is asked, whatever its clock says: one that was started since goes by
        it."""
        call.request = call.request or Repeat(clock.monotonic())
        call.request.take_turn(clock.monotonic())
        message = SkillCall(
            utime=max(call.requested_utime, call.asked_started_utime),
            call_id=call.call_id,
            module=call.module,
            skill=call.skill,
            caller=call.caller,
            parent=call.parent,
            arguments_json=json_text(call.arguments),
            on_loss=call.on_loss,
        )
        self._bus.publish(CALLS, encode(message))

    def cancel(self, call: CallState, reason: str, *, stops_robot: bool = False) -> None:
        """Ask a call to end; to ask for it once more changes nothing, but that a stop of the robot (``stops_robot``)
        comes after any other reason. Only a stop's reason says that it is one: agents and hosts go by that.

        One that was closed as lost may run nevertheless: its module is informed again.
        """
        if call.state == CLOSED and call.outcome is Outcome.LOST:
            self.losses.report(call)
        elif call.state in (REQUESTED, OPEN) and (call.cancel is None or (stops_robot and not call.is_stopped)):
            if reason.startswith(STOPPED) and not stops_robot:
                reason = f"somebody said: {reason}"
            call.cancel = Repeat(clock.monotonic()) if call.cancel is None else call.cancel.anew(clock.monotonic())
            mark = STOPPED if stops_robot else ""  # a secret may be a word of it
            call.cancel_reason = (mark + redacted(reason.removeprefix(mark)))[:MAX_REASON]
            call.cancel.take_turn(clock.monotonic())
            self._ledger.save(call)
            self._send_cancel(call)

    def order_end(self, call: CallState, reason: str) -> None:
        """Ask a call to end because somebody orders it. A module that was asked as often as it is asked at all, and
        may have heard nothing of that, is asked anew."""
        if call.cancel is not None and call.cancel.sent >= MOST_CANCELS:
            call.cancel = call.cancel.anew(clock.monotonic())
        self.cancel(call, reason)

    def repeat(self, call: CallState, now: float, *, may_ask: bool) -> None:
        """Say again what a call's module has not reacted to, if it is due, and ask for the call itself only if that
        ``may_ask``. What asks for a call that is to end comes behind the word that it is: a module that has not begun
        it does not begin it then."""
        asks = may_ask and call.state == REQUESTED and call.request is not None and now >= call.request.at
        if call.cancel is not None and call.cancel.sent < MOST_CANCELS and (call.cancel.take_turn(now) or asks):
            self._send_cancel(call)
        if asks:
            self.request(call)

    def _send_cancel(self, call: CallState) -> None:
        message = SkillCancel(utime=clock.utime(), call_id=call.call_id, reason=call.cancel_reason or "")
        self._bus.publish(CANCELS, encode(message))
