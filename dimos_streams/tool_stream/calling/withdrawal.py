"""The request over the bus for the end of a call."""

from __future__ import annotations

import asyncio
import contextlib

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.common.readable.shortening import at_most
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import BusError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCancel
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON
from dimos_streams.tool_stream.protocol.channels import CANCELS

_AGAIN_S = (0.1, 0.3, 0.7)
"""The times, in seconds, after which the request is repeated: any datagram may get lost, and a call that has ended
already is not touched."""


def named_reason(reason: str, caller: str) -> str:
    """Return the reason for the end of a call, without secrets, with the name of who asked for it."""
    by = f" (by {caller!r})"
    return at_most(redacted(reason), MAX_REASON - len(by)) + by


def request_end(bus: Bus, call_id: str, reason: str) -> None:
    """Ask for the end of a call, four times within a second, as long as the bus is open. Nobody acknowledges it: the
    call's events say whether it was heard."""
    why = at_most(redacted(reason), MAX_REASON)
    message = encode(SkillCancel(utime=clock.utime(), call_id=call_id, reason=why))
    _send(bus, message)
    for after_s in _AGAIN_S:
        asyncio.get_running_loop().call_later(after_s, _send, bus, message)


def _send(bus: Bus, message: bytes) -> None:
    with contextlib.suppress(BusError):  # a bus that was closed in the meantime: the bridge sees the module go
        bus.publish(CANCELS, message)
