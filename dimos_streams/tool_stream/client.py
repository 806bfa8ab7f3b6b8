"""How a running skill checks, begins and cancels other skills over the bus."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.errors import BusError, CallRejectedError, MessageError, SkillError, UnknownSkillError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import SkillCall, SkillCancel, ToolStreamRequest
from dimos_streams.tool_stream.arguments.schemas import check_arguments
from dimos_streams.tool_stream.audience import refusal
from dimos_streams.tool_stream.event import CALLS, CANCELS, EVENTS, REQUESTS, Outcome, json_text
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.wire import unpack_event

PENDING = "pending"
"""The kind of a ``ToolStreamRequest`` by which the bridge says that a call waits for what it needs to begin."""
_REPEAT_S = 0.25
_PENDING_REPEAT_S = 1.0
_TAKEN_WITHIN_S = 5.0
"""For a first sign of the bridge, and for the next one while a call waits."""
_INTRODUCTION_S = 1.0
_WITHDRAWN_AGAIN_S = (0.1, 0.3, 0.7)
"""After a call was withdrawn, when to say so again: any datagram may get lost."""


class BusSkillClient:
    """A ``SkillClient`` on behalf of one running call."""

    def __init__(self, bus: Bus, directory: ModuleDirectory, *, call_id: str, caller: str) -> None:
        self._bus = bus
        self._directory = directory
        self._call_id = call_id
        self._caller = caller
        self._numbers = itertools.count(1)

    async def check(self, skill: str, arguments: Mapping[str, Any]) -> None:
        """See ``SkillClient``. A module that has only just started is waited for a moment."""
        deadline = clock.monotonic() + _INTRODUCTION_S
        while True:
            try:
                info = self._directory.find(skill)[1]
                break
            except UnknownSkillError:
                if clock.monotonic() >= deadline:
                    raise
                await asyncio.sleep(0.05)
        why = refusal(skill, info.audience, caller=self._caller, parent=self._call_id)
        if why:
            raise CallRejectedError(why)
        check_arguments(info, arguments)

    async def start(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        on_wait: Callable[[], Awaitable[None]] | None = None,
    ) -> str:
        """See ``SkillClient``. The broker resolves the skill, has the call reviewed and takes the leases."""
        call_id = f"{self._call_id}.{next(self._numbers)}"
        message = SkillCall(
            utime=clock.utime(),
            call_id=call_id,
            skill=skill,
            caller=self._caller,
            parent=self._call_id,
            arguments_json=json_text(arguments),
        )
        try:
            await _Request(self._bus, message).begun(on_wait)
        except CallRejectedError:
            raise
        except BaseException:
            self._withdraw(call_id)
            raise
        return call_id

    async def cancel(self, call_id: str, reason: str) -> None:
        """See ``SkillClient``."""
        self._send_cancel(call_id, reason)

    def _withdraw(self, call_id: str) -> None:
        """Nobody waits for a call any more that may still begin: it must not."""
        reason = f"call {self._call_id!r}, which asked for it, does not want it any more"
        self._send_cancel(call_id, reason)
        for after_s in _WITHDRAWN_AGAIN_S:
            asyncio.get_running_loop().call_later(after_s, self._send_cancel, call_id, reason)

    def _send_cancel(self, call_id: str, reason: str) -> None:
        message = SkillCancel(utime=clock.utime(), call_id=call_id, reason=reason)
        with contextlib.suppress(BusError):  # a bus that was closed in the meantime: the bridge sees the module go
            self._bus.publish(CANCELS, encode(message))


class NoSkillClient:
    """A ``SkillClient`` for calls that may not touch others: what is declared read-only keeps to it."""

    def __init__(self, skill: str) -> None:
        self._skill = skill

    async def check(self, skill: str, arguments: Mapping[str, Any]) -> None:
        """See ``SkillClient``; always raises ``SkillError``."""
        raise self._refusal("begin", skill)

    async def start(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        on_wait: Callable[[], Awaitable[None]] | None = None,
    ) -> str:
        """See ``SkillClient``; always raises ``SkillError``."""
        raise self._refusal("begin", skill)

    async def cancel(self, call_id: str, reason: str) -> None:
        """See ``SkillClient``; always raises ``SkillError``."""
        raise self._refusal("end call", call_id)

    def _refusal(self, what: str, which: str) -> SkillError:
        return SkillError(f"skill {self._skill!r} can't {what} {which!r}: it is declared read_only")


class _Request:
    """A call that is asked for again and again, until the bridge has said what becomes of it."""

    def __init__(self, bus: Bus, message: SkillCall) -> None:
        self._bus = bus
        self._message = message
        self._decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending = False
        """Whether the bridge has said since the last look that the call waits."""

    async def begun(self, on_wait: Callable[[], Awaitable[None]] | None) -> None:
        """Wait until the call has begun. Raises ``CallRejectedError``, or ``SkillError`` if nobody takes it."""
        subscriptions = [self._bus.subscribe(EVENTS, self._on_event), self._bus.subscribe(REQUESTS, self._on_sign)]
        try:
            deadline, pause_s = clock.monotonic() + _TAKEN_WITHIN_S, _REPEAT_S
            while clock.monotonic() < deadline:
                self._bus.publish(CALLS, encode(self._message))
                await asyncio.wait([self._decided], timeout=pause_s)
                if self._decided.done():
                    return self._decided.result()
                if self._pending:
                    self._pending = False
                    deadline, pause_s = clock.monotonic() + _TAKEN_WITHIN_S, _PENDING_REPEAT_S
                    if on_wait is not None:
                        report, on_wait = on_wait, None
                        await report()
        finally:
            for subscription in subscriptions:
                subscription.close()
        skill = self._message.skill
        raise SkillError(f"nobody took the call of {skill!r} within {_TAKEN_WITHIN_S:g} s; does a bridge run?")

    def _on_event(self, channel: str, data: bytes) -> None:
        """Decide by the first events of the call: it runs, or it was rejected."""
        try:
            event = unpack_event(data, channel)
        except MessageError:  # the receiver of the bridge counts and reports it
            return
        if event.call_id != self._message.call_id or self._decided.done():
            return
        if event.outcome is Outcome.REJECTED:
            self._decided.set_exception(CallRejectedError(event.text))
            self._decided.exception()  # perhaps nobody waits any more
        elif event.type != "open" or not event.data.get("refused"):
            self._decided.set_result(None)

    def _on_sign(self, channel: str, data: bytes) -> None:
        try:
            request = decode(ToolStreamRequest, data, channel=channel)
        except MessageError:  # as above
            return
        if request.kind == PENDING and request.call_id == self._message.call_id:
            self._pending = True
