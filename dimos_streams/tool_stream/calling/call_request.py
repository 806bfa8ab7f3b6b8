"""The request of a running skill to the bridge for a call, repeated until the bridge has decided on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.errors import CallRejectedError, MessageError, SkillError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import SkillCall, ToolStreamRequest
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS, PENDING, REQUESTS
from dimos_streams.tool_stream.wire.layout import call_id_of
from dimos_streams.tool_stream.wire.unpacking import unpack_event

_REPEAT_S = 0.25
_PENDING_REPEAT_S = 1.0
_TAKEN_WITHIN_S = 5.0
"""Maximum wait, in seconds, for a first sign of the bridge, and for the next one while a call waits."""


class RepeatedRequest:
    """A request for a call, repeated until the bridge has said what becomes of the call."""

    def __init__(
        self, bus: Bus, message: SkillCall, *, believes: Callable[[ToolEvent], bool], alone: Callable[[], bool]
    ) -> None:
        """``believes`` says whether an event can come from somebody who may run the call, or refuse it; ``alone``
        says whether no bridge can be there."""
        self._bus = bus
        self._message = message
        self._believes = believes
        self._alone = alone
        self._decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending = False
        """True if the bridge has said since the last look that the call waits."""

    async def begun(self, on_wait: Callable[[], Awaitable[None]] | None) -> None:
        """Wait until the call has begun. Raises ``CallRejectedError``, or ``SkillError`` if nobody takes it."""
        with (
            closing(self._bus.subscribe(EVENTS, self._on_event, largest=ONE_PIECE)),
            closing(self._bus.subscribe(REQUESTS, self._on_sign, largest=ONE_PIECE)),
        ):
            deadline, pause_s = clock.monotonic() + _TAKEN_WITHIN_S, _REPEAT_S
            while clock.monotonic() < deadline:
                self._bus.publish(CALLS, encode(self._message))
                await asyncio.wait([self._decided], timeout=pause_s)
                if self._decided.done():
                    return self._decided.result()
                if self._pending:
                    self._pending = False
                    if on_wait is not None:
                        report, on_wait = on_wait, None
                        await report()  # which may take its time, and the bridge is asked nothing meanwhile
                    deadline, pause_s = clock.monotonic() + _TAKEN_WITHIN_S, _PENDING_REPEAT_S
                elif self._alone():
                    raise SkillError(
                        f"nobody took the call of {self._message.skill!r}: there is no bridge on this bus, which "
                        "skills need to use others (modules: {bridge: {type: dimos_streams.bridge.module:Bridge}})"
                    )
        skill = self._message.skill
        raise SkillError(
            f"nobody took the call of {skill!r} within {_TAKEN_WITHIN_S:g} s; does a bridge run? "
            "(in tests, ModuleHarness has none; blueprint_run has the blueprint's)"
        )

    def _on_event(self, channel: str, data: bytes) -> None:
        """Decide by the first events of the call: it runs, or it was rejected."""
        if call_id_of(data) != self._message.call_id:
            return
        try:
            event = unpack_event(data, channel)
        except MessageError:  # the receiver of the bridge counts and reports it
            return
        if self._decided.done() or not self._believes(event):
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
