"""Looks after all open calls: has their modules asked again, and closes the calls of those that are gone."""

from __future__ import annotations

import asyncio
import logging

from dimos_streams import clock
from dimos_streams.bridge.calls.closing import close_for_module
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.sending.call_sender import CallSender, may_ask_again
from dimos_streams.bridge.calls.starvation import SILENT_S, Starvation
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED, OPEN, REQUESTED
from dimos_streams.bus import Bus
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import end_tasks
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.family import parent_of, with_parent
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.heartbeat import process_ended
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.protocol.close_data import TO_END
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver

_logger = logging.getLogger(__name__)
_log = LimitedLog(_logger)

_TICK_S = 0.1
_BEGIN_S = 2.0
"""Time, in seconds, for a module to begin a call. Heartbeats have ``ALIVE_S`` to list one that should run."""
CONTINUE_S = 60.0
"""Time, in seconds, for a heartbeat of a module that runs a call which is to go on when a link is cut."""
_PARENTS_TRIES = 3
"""Number of times that a call is asked to end, within 0.5 s, before its children are asked too: it should end them
itself, in its order."""
_NOISE = 4.0
"""Factor by which a silence may last longer if this process missed messages in it: in a flood, it may be at fault. So
it may while the module's process waits for a processor."""


class Watchdog:
    """Looks every 0.1 s after all open calls."""

    def __init__(
        self,
        bus: Bus,
        ledger: Ledger,
        directory: ModuleDirectory,
        receiver: ToolStreamReceiver,
        sender: CallSender,
    ) -> None:
        """``receiver`` takes the events of the calls; it takes nothing more of one that is lost."""
        self._bus = bus
        self._ledger = ledger
        self._directory = directory
        self._receiver = receiver
        self._sender = sender
        self._starvation = Starvation()
        self._task: asyncio.Task[None] | None = None
        self._listening_since = 0.0
        """Silence before this time does not count, on the loop's clock: this process had not begun, or was held
        up."""

    def start(self) -> None:
        """Begin. Modules have a moment to be heard before any counts as silent."""
        self._loop = asyncio.get_running_loop()
        self._listening_since = clock.monotonic()
        self._task = self._loop.create_task(self._run(), name="watchdog")

    async def stop(self) -> None:
        """End. Twice is fine."""
        task, self._task = self._task, None
        if task is not None:
            await end_tasks(task)

    def on_status(self, status: ModuleStatus) -> None:
        """Take a heartbeat, which says which calls its module runs, and in which instance of it."""
        for call_id in status.call_ids:
            call = self._ledger.calls.get(call_id)
            if call is None:
                continue
            call.module = call.module or status.module
            if call.module != status.module:
                continue
            owns = call.instance in ("", status.instance)
            if call.state == CLOSED and (owns or self._directory.is_active(call.module, status.instance)):
                # It runs on in a module that had been given up, or again in its successor; one that has ended
                # overhears this.
                self._sender.losses.report_once(call)
            elif not owns:
                continue
            elif call.state == OPEN:
                call.hear()
                if call.missing_open and call.skill:
                    self._look_up_leases(call)
                if not call.instance and self._directory.is_active(call.module, status.instance):
                    call.instance = status.instance
                    self._ledger.save(call)

    def _look_up_leases(self, call: CallState) -> None:
        found = self._directory.named(call.skill)
        if found is None:  # its module has not introduced itself yet
            return
        call.resources = found[1].resources
        call.missing_open = False
        self._ledger.leases.grant(call.call_id, call.resources)
        self._ledger.save(call)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self._tick(clock.monotonic())

    def _tick(self, now: float) -> None:
        self._listening_since = max(self._listening_since, self._directory.attentive_since)
        self._starvation.look()
        for call in self._ledger.calls.open:
            try:
                self._look_after(call, now)
            except Exception:  # this task, and all other calls, must outlive whatever one call does to it
                _log.exception("call %s could not be looked after", call.call_id)
        try:
            self._sender.losses.repeat(now)
        except Exception:
            _log.exception("the ends of lost calls could not be repeated")

    def _look_after(self, call: CallState, now: float) -> None:
        lost = self._why_lost(call, now)
        if lost:
            self.lose(call, lost)
        else:
            self._end_with_parent(call, now)
            self._settle_leases(call)
            self._sender.repeat(call, now, may_ask=may_ask_again(self._directory, call))

    def _end_with_parent(self, call: CallState, now: float) -> None:
        """End a child whose parent has ended, or has been asked to and does not end its children itself."""
        parent_id = parent_of(call.call_id)
        if not parent_id or call.cancel is not None:
            return
        parent = self._ledger.begun(parent_id)
        if parent is None:
            if now >= self._listening_since + ALIVE_S:
                self._sender.cancel(call, f"{with_parent(call.call_id)}, to which this one belongs, is not known")
            return
        whole = f"{with_parent(call.call_id)} of {parent.skill!r}, to which this one belongs,"
        if parent.state == CLOSED:
            self._sender.cancel(call, f"{whole} has ended: {parent.outcome}")
        elif parent.cancel is not None and parent.cancel.sent > _PARENTS_TRIES:
            why = parent.cancel_reason or ""
            self._sender.cancel(call, f"{whole} was asked to end: {why}")

    def _settle_leases(self, call: CallState) -> None:
        """End a call that runs without its leases: they were given away while its broker's journal was lost."""
        lacking = self._ledger.leases.lacking(call.call_id, call.resources)
        for resource, holder in lacking.items():
            self._sender.cancel(
                call, f"{resource!r} was given to call {holder!r} while the bridge did not know of this one"
            )
        if not lacking:
            self._ledger.leases.grant(call.call_id, call.resources)

    def _why_lost(self, call: CallState, now: float) -> str:
        """Return why a call has to be given up as lost; empty if it goes on."""
        if call.state == REQUESTED:
            return self._why_not_begun(call, now)
        if now < self._listening_since + ALIVE_S:
            return ""
        if call.on_loss != "continue" and self._directory.departed(call.module, call.instance):
            why = process_ended(how) if (how := self._how_ended(call)) else "gone: its links have ended"
            return f"module {call.module!r} is {why}"
        return self._why_unheard(call, now)

    def _why_not_begun(self, call: CallState, now: float) -> str:
        if self._may_be_done_twice(call):
            again = f"module {call.module!r} was started again before it had said that it began the call"
            return f"{again}: nobody knows whether it did"
        since = max(call.since, self._listening_since)
        begin_s = self._extended(_BEGIN_S, since)
        if self._counted(call, now - since, begin_s) <= begin_s:
            return ""
        return f"module {call.module!r} did not begin the call within {begin_s:g} s{self._why_silent(call)}"

    def _why_unheard(self, call: CallState, now: float) -> str:
        """Return why a call that runs is lost by the silence of its module; empty if it is not."""
        # Whatever others say in its module's name, a call is lost only by the silence of the instance that runs it.
        heard = max(self._listening_since, call.listed, self._receiver.heard_at(call.call_id))
        alive_s = self._extended(ALIVE_S, heard)
        silent = self._counted(call, now - heard, alive_s)
        if silent <= alive_s:
            return ""
        if call.instance and self._directory.superseded(call.module, call.instance):
            why = f": its process {how}" if (how := self._how_ended(call)) else ""
            return f"module {call.module!r} was started again while the call ran{why}"
        module = self._directory.module(call.module)
        silence_s = CONTINUE_S if call.on_loss == "continue" else alive_s
        if module is None:
            return f"module {call.module!r} is not known" if silent > silence_s else ""
        if min(module.age_s, silent) > silence_s:
            return f"module {call.module!r} is {module.health}"
        if module.age_s <= alive_s:
            return f"module {call.module!r} does not know the call any more"
        return ""

    def _may_be_done_twice(self, call: CallState) -> bool:
        """Return whether a motion was asked of an instance that another one has followed since: the first may have
        begun it without being heard, and the robot would move once more."""
        if not self._directory.begun_since(call.module, call.requested_utime, besides=call.asked):
            return False
        found = self._directory.named(call.skill)
        return found is not None and found[1].may_move

    def _why_silent(self, call: CallState) -> str:
        """Return why a module has not begun a call, as far as somebody has said it."""
        module = self._directory.module(call.module)
        how = "" if module is None else self._directory.how_ended(module.name, module.instance)
        return f": its process {how}" if how else ""

    def _how_ended(self, call: CallState) -> str:
        return self._directory.how_ended(call.module, call.instance)

    def _counted(self, call: CallState, silent: float, bound_s: float) -> float:
        """Return what counts of a silence: not the time for which its process has waited for a processor, unless it
        lasts for too long all the same."""
        if not SILENT_S < silent <= bound_s * _NOISE:
            return silent
        module = self._directory.module(call.module)
        if module is None or module.instance != (call.instance or module.instance):
            return silent
        return silent - self._starvation.of(module)

    def _extended(self, seconds: float, since: float) -> float:
        """Return a timeout for messages: ``seconds``, or more if messages were missed since."""
        missed_at = max(self._directory.missed_at, self._receiver.missed_at)
        return seconds * _NOISE if missed_at >= since else seconds

    def lose(self, call: CallState, why: str) -> None:
        """Close a call as lost, after the events of it that have already come."""
        if not call.closing:
            call.closing = True
            self._receiver.finish(call.call_id)
            # What the receiver has in hand is entered before this, in the order in which it was scheduled.
            self._loop.call_soon(self._close_lost, call, why)

    def _close_lost(self, call: CallState, why: str) -> None:
        if call.state in (REQUESTED, OPEN):
            _logger.warning("call %s of %r is lost: %s", call.call_id, call.skill, why)
            try:
                close_for_module(self._bus, self._ledger, call, Outcome.LOST, why, **_ending_of(call))
            except Exception:
                call.closing = False  # the next look closes it
                _log.exception("call %s could not be closed as lost", call.call_id)
                return
            self._sender.losses.report(call)
            for other in self._ledger.calls.open:
                self._end_with_parent(other, clock.monotonic())


def _ending_of(call: CallState) -> dict[str, str]:
    """The part of a lost call's close that says for which reason it was to end; empty if it was not."""
    return {} if call.cancel is None or not call.cancel_reason else {TO_END: call.cancel_reason}
