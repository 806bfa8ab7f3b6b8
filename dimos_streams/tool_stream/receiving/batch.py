"""The events of a receiver that are not handed over yet: what has come in together is handed over together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from dimos_streams.bus import Subscription
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.tool_stream.event import ToolEvent

_RETRY_S = 0.005
"""The time, in seconds, until events that could not be handed over are handed over again."""
_MAX_EVENTS, _MAX_BYTES = 128, 256 * 1024
"""Maximum number of events, and maximum size in bytes of their messages, that are handed over together."""
_TURNS = 3
"""Number of turns of the loop, each of a millisecond at most, in which they may be gathered."""

_log = LimitedLog(logging.getLogger(__name__))


class BatchedDelivery:
    """The events in hand. If ``deliver`` raises, they are handed over again with what has come since. Use from the
    bus's loop only."""

    def __init__(
        self, deliver: Callable[[list[ToolEvent]], None], delivered: Callable[[list[ToolEvent]], None]
    ) -> None:
        """``delivered`` is called with what was handed over."""
        self._deliver, self._delivered = deliver, delivered
        self.events: list[ToolEvent] = []
        self._bytes = 0
        """Bytes of the messages that were read since the batch began."""
        self._gathering = False
        self._retry: asyncio.TimerHandle | None = None

    def start(self, messages: Subscription) -> None:
        """Begin; as long as ``messages`` wait there is more to come."""
        self._messages = messages
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Hand over what is in hand, for the last time."""
        self.hand_over()
        if self._retry is not None:
            self._retry.cancel()

    def came(self, size: int) -> None:
        """Note that a message of ``size`` bytes was read: hand over, or wait for more. A lone message waits for
        nothing."""
        self._bytes += size
        is_full = len(self.events) >= _MAX_EVENTS or self._bytes >= _MAX_BYTES
        if is_full or not self._messages.waiting:
            self.hand_over()
        elif not self._gathering:
            self._gathering = True
            self._loop.call_soon(self._hand_over_within, _TURNS)

    def _hand_over_within(self, turns: int) -> None:
        """Hand over in ``turns`` turns of the loop at the latest: a batch costs as much as two or three events, and
        where they come faster than they are handled each waits already."""
        if turns > 0 and self._gathering and self._messages.waiting:
            self._loop.call_soon(self._hand_over_within, turns - 1)
        else:
            self.hand_over()

    def hand_over(self) -> None:
        """Hand over what is in hand now."""
        self._gathering = False
        events = self.events
        if not events:
            return
        try:
            self._deliver(events)
        except Exception:
            _log.exception("%d events could not be delivered and will be again", len(events))
            if self._retry is not None:
                self._retry.cancel()
            self._retry = self._loop.call_later(_RETRY_S, self.hand_over)
            return
        self.events, self._bytes = [], 0
        self._delivered(events)
