"""Calls and cancels that come over the bus: a running skill begins or ends other skills."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dimos_streams import clock
from dimos_streams.bridge.calls import CLOSED, CallState
from dimos_streams.bridge.ledger import Ledger
from dimos_streams.bridge.tending import Tending, close_for_module
from dimos_streams.bus import Bus, Subscription
from dimos_streams.errors import CallRejectedError, DimosStreamsError, MessageError
from dimos_streams.limited_log import LimitedLog
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import SkillCall, SkillCancel
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.event import (
    CALLS,
    CANCELS,
    EVENTS,
    MAX_ARGUMENTS,
    Outcome,
    is_call_id,
    is_name,
    json_object,
    json_text,
)
from dimos_streams.tool_stream.wire import pack_event

_MAX_PENDING = 100
_MAX_TEXT = 4000

_log = LimitedLog(logging.getLogger(__name__))


class SkillRequests:
    """Takes ``SkillCall`` without a module, and every ``SkillCancel``, off the bus. Idempotent by call id."""

    def __init__(
        self,
        bus: Bus,
        ledger: Ledger,
        tending: Tending,
        finish: Callable[[str], int],
        admit: Callable[[CallState, OnDuplicate | None, float], Awaitable[None]],
    ) -> None:
        self._bus = bus
        self._ledger = ledger
        self._tending = tending
        self._finish = finish
        self._admit = admit
        self._pending: dict[str, asyncio.Task[None]] = {}
        self._subscriptions: list[Subscription] = []
        self.malformed = 0

    def start(self) -> None:
        """Begin to listen. The bus must be open."""
        self._subscriptions = [
            self._bus.subscribe(CALLS, self._on_call),
            self._bus.subscribe(CANCELS, self._on_cancel),
        ]

    async def stop(self) -> None:
        """Stop listening, and forget requests that still wait. Twice is fine."""
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []
        pending = list(self._pending.values())
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    def _on_call(self, channel: str, data: bytes) -> None:
        try:
            message = decode(SkillCall, data, channel=channel)
            if message.module:  # the broker's own, to a host
                return
            arguments = json_object(message.arguments_json, channel, SkillCall.msg_name)
            names = (message.skill, message.caller, message.parent)
            if not (is_call_id(message.call_id) and all(map(is_name, names))):
                raise MessageError(channel, SkillCall.msg_name, "a name is too long, not printable, or no id")
        except MessageError as error:
            self.malformed += 1
            _log.warning("skipped: %s", error)
            return
        known = self._ledger.calls.get(message.call_id)
        if known is not None:
            self._tell_again(known)
        elif message.call_id not in self._pending and len(self._pending) < _MAX_PENDING:
            call = CallState(
                call_id=message.call_id,
                skill=message.skill,
                module="",
                caller=message.caller,
                parent=message.parent,
                arguments=arguments,
            )
            task = asyncio.get_running_loop().create_task(self._begin(call), name=f"admit {call.call_id}")
            self._pending[call.call_id] = task
            task.add_done_callback(lambda _: self._pending.pop(call.call_id, None))

    def _tell_again(self, call: CallState) -> None:
        """Who asks a second time has not heard the first answer."""
        if call.state != CLOSED:
            self._tending.request(call)
        elif call.last is not None:
            self._bus.publish(EVENTS, pack_event(call.last))

    async def _begin(self, call: CallState) -> None:
        try:
            await self._admit(call, None, 0.0)
        except DimosStreamsError as error:
            self._refuse(call, error)

    def _refuse(self, call: CallState, error: DimosStreamsError) -> None:
        """Refused calls have events too, so that their caller hears of them."""
        holder = error.holder if isinstance(error, CallRejectedError) else ""
        call.uses, call.requested_utime = (), clock.utime()
        if len(json_text(call.arguments).encode()) > MAX_ARGUMENTS:
            call.arguments = {}
        self._finish(call.call_id)
        self._ledger.begin(call)
        close_for_module(self._bus, self._ledger, call, Outcome.REJECTED, str(error)[:_MAX_TEXT], holder=holder)

    def _on_cancel(self, channel: str, data: bytes) -> None:
        try:
            message = decode(SkillCancel, data, channel=channel)
        except MessageError as error:
            self.malformed += 1
            _log.warning("skipped: %s", error)
            return
        call = self._ledger.calls.get(message.call_id)
        if call is not None:
            self._tending.cancel(call, message.reason)
