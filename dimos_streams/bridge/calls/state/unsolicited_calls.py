"""The room for open calls that were begun without the bridge: anybody on the bus may invent some."""

from __future__ import annotations

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.common.allowance import Allowance
from dimos_streams.tool_stream.event import ToolEvent

MAX_UNSOLICITED = 500
"""Maximum number of open calls that are unsolicited, begun without the bridge; more are ignored."""
UNSOLICITED_BYTES = 1024 * 1024
"""Maximum memory of the texts, arguments and resources of all these calls, in bytes; half of it for long texts."""
_NEW_UNSOLICITED = (5.0, 200.0)
"""Maximum number of new ones per second, and at once: each is entered, watched, closed and reported."""


class UnsolicitedCalls:
    """The memory that each open unsolicited call takes, and a bound for all of them."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._new = Allowance(*_NEW_UNSOLICITED)

    @property
    def bytes(self) -> int:
        """The memory of all of them."""
        return self._bytes

    def admit(self, event: ToolEvent) -> CallState | None:
        """The call that an event is the first one of, if there is room for it."""
        if len(self._sizes) >= MAX_UNSOLICITED or not self._new.take():
            return None
        call = CallState.from_event(event)
        if self._bytes + call.size > UNSOLICITED_BYTES:
            return None
        call.unsolicited = True
        self.account(call)
        return call

    def account(self, call: CallState) -> None:
        """Count a call's memory as it is now, and shorten its texts if it is too much."""
        others = self._bytes - self._sizes.get(call.call_id, 0)
        if others + call.size > UNSOLICITED_BYTES // 2:
            call.shorten()
        size = self._sizes[call.call_id] = call.size
        self._bytes = others + size

    def forget(self, call_id: str) -> None:
        """Make room for others: a call has closed."""
        self._bytes -= self._sizes.pop(call_id, 0)
