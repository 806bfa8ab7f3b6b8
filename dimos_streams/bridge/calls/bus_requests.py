"""Calls and cancels that come over the bus: a running skill begins or ends other skills."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.bridge.calls.authority import UNKNOWN, Authority
from dimos_streams.bridge.calls.call_admission import CallAdmission
from dimos_streams.bridge.calls.closing import close_again, close_for_module
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.sending.call_sender import CallSender, may_ask_again
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.bus import Bus, Subscription
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.secrets import redacted, redacted_data
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.errors import CallRejectedError, DimosStreamsError, MessageError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import SkillCall, SkillCancel, ToolStreamRequest
from dimos_streams.tool_stream.addressee import first_texts
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.family import parent_of
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS, MAX_REASON, REQUEST_BYTES
from dimos_streams.tool_stream.protocol.call_message import check_names, on_loss_of
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, PENDING, REQUESTS
from dimos_streams.tool_stream.protocol.json_fields import arguments_object
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver

_MAX_PENDING = 100
_MAX_FROM_NOWHERE = 20
"""Maximum number of waiting requests that name no open call."""
_LOOK_S = 0.05
"""Pause, in seconds, between two looks whether somebody is known. Heartbeats and events, any
of which may make it known, cause no look: a hundred requests may wait, in a flood of either."""
_INTRODUCTION_S = 1.0
"""Time, in seconds, for the asking call and its agent to become known: an event or a heartbeat may get lost."""

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(eq=False, slots=True)
class _Pending:
    """A call that waits for what it needs to begin."""

    call: CallState
    task: asyncio.Task[None] | None = None
    withdrawn: str | None = None
    """The reason why the asker does not want the call any more; None if it still does."""


class BusRequests:
    """Takes ``SkillCall`` without a module, and every ``SkillCancel``, off the bus. Idempotent by call id."""

    def __init__(
        self,
        bus: Bus,
        ledger: Ledger,
        sender: CallSender,
        authority: Authority,
        admission: CallAdmission,
        receiver: ToolStreamReceiver,
        directory: ModuleDirectory,
    ) -> None:
        """``receiver`` takes the events of the calls; it takes nothing more of one that is refused."""
        self._bus = bus
        self._ledger = ledger
        self._sender = sender
        self._authority = authority
        self._admission = admission
        self._receiver = receiver
        self._directory = directory
        self._pending: dict[str, _Pending] = {}
        self._subscriptions: list[Subscription] = []
        self.malformed = 0

    def start(self) -> None:
        """Begin to listen. The bus must be open."""
        self._subscriptions = [
            self._bus.subscribe(CALLS, self._on_call, capacity_bytes=REQUEST_BYTES, largest=ONE_PIECE),
            self._bus.subscribe(CANCELS, self._on_cancel, capacity_bytes=REQUEST_BYTES, largest=ONE_PIECE),
        ]

    async def stop(self) -> None:
        """Stop listening, and forget requests that still wait. Twice is fine."""
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []
        tasks = [pending.task for pending in self._pending.values() if pending.task is not None]
        await end_tasks_silently(*tasks)

    def _on_call(self, channel: str, data: bytes) -> None:
        first = first_texts(SkillCall, data, 5)
        if first is not None and not self._may_be_meant(*first):
            return
        try:
            call = _read_call(channel, data)
        except MessageError as error:
            self.malformed += 1
            _log.warning("skipped: %s", error)
            return
        if call is None:
            return
        known = self._ledger.calls.get(call.call_id)
        if known is None and self._ledger.calls.get(call.parent) is not None:
            known = self._ledger.recall(call.call_id)
        if known is not None:
            self._answer_again(known)
        elif call.call_id in self._pending:
            sign = ToolStreamRequest(utime=clock.utime(), kind=PENDING, call_id=call.call_id)
            self._bus.publish(REQUESTS, encode(sign))
        elif self._has_room(call.parent) and not self._directory.reads_outdated:  # else it may have been given up
            self._begin_soon(call)

    def _begin_soon(self, call: CallState) -> None:
        parent = self._ledger.calls.get(call.parent)
        call.asked_on_loss = call.asked_on_loss or (parent.asked_on_loss if parent is not None else None)
        pending = self._pending[call.call_id] = _Pending(call)
        pending.task = asyncio.get_running_loop().create_task(self._begin(pending), name=f"admit {call.call_id}")
        pending.task.add_done_callback(lambda task: self._on_done(pending, task))

    def _may_be_meant(self, call_id: str, module: str, skill: str, caller: str, parent: str) -> bool:
        """Return whether a call is meant for the broker, not given by it to a host, and can't simply be ignored."""
        calls = self._ledger.calls
        known = call_id in self._pending or calls.get(call_id) is not None or calls.get(parent) is not None
        return not module and (known or self._has_room(parent))

    def _has_room(self, parent: str) -> bool:
        """Return whether one more request may wait. Those that no open call makes are few, and end soon."""
        if len(self._pending) >= _MAX_PENDING:
            return False
        if self._ledger.calls.get(parent) is not None:
            return True
        unknown = (self._ledger.calls.get(each.call.parent) is None for each in self._pending.values())
        return sum(unknown) < _MAX_FROM_NOWHERE

    def _answer_again(self, call: CallState) -> None:
        """Repeat the answer to a request: whoever asks a second time has not heard the first answer."""
        if call.state == CLOSED:
            close_again(self._bus, self._ledger, call)
        elif may_ask_again(self._directory, call) and not self._is_for_successor(call):
            self._sender.request(call)

    def _is_for_successor(self, call: CallState) -> bool:
        """Return whether a call's module was started since it was asked for. Only the instance that was asked says
        its newest event again; this one would begin the call, which is lost soon."""
        runs_it = call.instance or call.asked
        return self._directory.begun_since(call.module, call.requested_utime, besides=runs_it)

    async def _begin(self, pending: _Pending) -> None:
        call = pending.call
        try:
            await self._until_known(call)
            self._authority.trace(call)
            await self._admission.admit(call)
        except DimosStreamsError as error:
            self._refuse(call, error)
        except Exception:
            _log.exception("call %s could not be begun", call.call_id)
            self._refuse(
                call, CallRejectedError("an internal error kept it from beginning; the bridge's log says more")
            )

    def _on_done(self, pending: _Pending, task: asyncio.Task[None]) -> None:
        del self._pending[pending.call.call_id]
        if task.cancelled() and pending.withdrawn is not None:
            error = CallRejectedError(f"withdrawn before it began: {pending.withdrawn}")
            self._refuse(pending.call, error)  # so that a request that comes late begins nothing

    async def _until_known(self, call: CallState) -> None:
        """Wait a moment until the asking call and its agent are known."""
        await self._ledger.until_all_are_known()
        deadline = clock.monotonic() + _INTRODUCTION_S
        while not self._authority.knows(call) and clock.monotonic() < deadline:  # noqa: ASYNC110 - two tables
            await asyncio.sleep(_LOOK_S)

    def _refuse(self, call: CallState, error: DimosStreamsError) -> None:
        """Close a call as rejected. Refused calls have events too, so that their caller hears of them."""
        holder = error.holder if isinstance(error, CallRejectedError) else ""
        call.resources, call.requested_utime = (), clock.utime()
        if len(json_text(call.arguments).encode()) > MAX_ARGUMENTS:
            call.arguments = {}
        self._receiver.finish(call.call_id)
        self._ledger.begin(call)
        close_for_module(self._bus, self._ledger, call, Outcome.REJECTED, str(error)[:MAX_REASON], holder=holder)

    def _on_cancel(self, channel: str, data: bytes) -> None:
        first = first_texts(SkillCancel, data, 1)
        if first is not None and first[0] not in self._pending and self._ledger.calls.get(first[0]) is None:
            return
        try:
            message = decode(SkillCancel, data, channel=channel)
        except MessageError as error:
            self.malformed += 1
            _log.warning("skipped: %s", error)
            return
        call = self._ledger.calls.get(message.call_id)
        pending = self._pending.get(message.call_id)
        if call is not None:
            if call.state != CLOSED or not message.outcome:  # or it is the bridge itself that says so
                self._sender.cancel(call, message.reason)
        elif pending is not None and pending.task is not None and pending.withdrawn is None:
            pending.withdrawn = message.reason
            pending.task.cancel()


def _read_call(channel: str, data: bytes) -> CallState | None:
    """The call that a skill asks for; None for a call that the broker gives to a host. Raises ``MessageError``.

    The caller is not taken from the message: it is whoever began the asking call.
    """
    message = decode(SkillCall, data, channel=channel)
    if message.module:
        return None
    arguments = redacted_data(arguments_object(message.arguments_json, channel, SkillCall.msg_name))
    check_names(message, channel)
    if parent_of(message.call_id) not in ("", message.parent):
        why = f"the id of call {message.call_id!r} is of no child of {message.parent!r}, which asks for it"
        raise MessageError(channel, SkillCall.msg_name, why)
    return CallState(
        call_id=message.call_id,
        skill=redacted(message.skill),
        module="",
        caller=UNKNOWN,
        parent=message.parent,
        arguments=arguments,
        asked_on_loss=on_loss_of(message, channel),
    )
