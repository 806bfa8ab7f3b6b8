"""A subscription of a bus: one handler with its own bounded queue."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from dimos_streams import clock
from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.common.limited_log import LimitedLog

Handler = Callable[[str, bytes], None]
"""A function that takes a channel and a payload. It runs on the loop, must not block, and is never called from inside
``publish``."""

DEFAULT_CAPACITY = 8192
CAPACITY_BYTES = 16 * 1024 * 1024
"""The bytes that a subscription's queue holds at most, whatever its capacity in messages."""
_OUTSIZE = 3
"""Maximum number of doublings above the usual size of what is queued (the geometric mean, in which one large message
does not hide many small ones): a larger message for which there is no room is thrown away itself."""
_SLICE = 64
"""Maximum number of messages that one subscription handles before other work on the loop has its turn."""
SLICE_S = 0.001
"""Maximum time, in seconds, that it handles messages before that; the limit that is reached first counts."""

_log = LimitedLog(logging.getLogger(__name__))


class Mark(NamedTuple):
    """Bytes by which a message is known."""

    at: int
    """Their position, from the message's beginning or, if below 0, from its end."""
    value: bytes


class Ration(NamedTuple):
    """The messages that bear one of some marks, and a random share, above 0 and below 1, of all others."""

    share: float
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class SubscriptionStatistics:
    """Counts since the subscription began."""

    received: int
    handled: int
    dropped: int
    """Messages thrown away, oldest first, because the handler did not keep up."""
    errors: int
    """Handler calls that ended with an exception; each is logged, none stops the bus."""
    waiting: int


class SubscriptionOptions(TypedDict, total=False):
    """The options of a subscription to one channel, as keywords."""

    capacity: int
    """Maximum number of messages that wait for the handler."""
    capacity_bytes: int
    """Maximum number of bytes that wait for it."""
    namespaces: Sequence[str] | None
    """Whose messages are wanted, on channels on which modules speak of themselves: what modules of other namespaces
    say need not be handled. Prefixes, as ``"robot1/"``; what is in none is always handled."""
    largest: int
    """The size in bytes above which a message need not come: a transport that puts fragments together may leave it
    out."""


class Subscription:
    """One handler with its own bounded queue. When the queue is full, the oldest messages are dropped; a new one that
    is much larger than those is dropped itself."""

    def __init__(
        self,
        handler: Handler,
        forget: Callable[[Subscription], None],
        *,
        capacity: int = DEFAULT_CAPACITY,
        capacity_bytes: int = CAPACITY_BYTES,
        namespaces: Sequence[str] | None = None,
        largest: int = MAX_MESSAGE,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """``forget`` is called at its end, ``changed`` when it wants other messages; see ``SubscriptionOptions``."""
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity!r}")
        self.capacity_bytes = capacity_bytes
        self.namespaces = namespaces
        self.largest = min(largest, capacity_bytes, MAX_MESSAGE)
        """Maximum size of a message whose fragments need be put together, in bytes."""
        self.ration: Ration | None = None
        """See ``take_only``."""
        self._changed = changed
        self._handler = handler
        self._capacity = capacity
        self._queue: deque[tuple[str, bytes]] = deque()
        self._queued_bytes = 0
        self._queued_bits = 0
        """The sum of the binary logarithms of the queued messages' sizes."""
        self._forget = forget
        self._scheduled = False
        self._closed = False
        self._received = self._handled = self._dropped = self._errors = 0
        self.missed_at = float("-inf")
        """The time on the loop's clock at which messages were last thrown away, or may have been."""

    def take_only(self, ration: Ration | None) -> None:
        """Take only a random share, in a flood, of the messages that bear none of the ration's marks; None takes all
        messages. A transport that can't have the kernel drop the others passes them on all the same."""
        if ration != self.ration:
            self.ration = ration
            self._changed()

    def push(self, loop: asyncio.AbstractEventLoop, channel: str, data: bytes) -> None:
        """Queue one message and have it handled soon; for implementations of buses."""
        if self.keep_for_all(channel, data):
            loop.call_soon(self._drain, loop)

    def keep_for_all(self, channel: str, data: bytes) -> bool:
        """Queue one message; return whether it must be passed to ``drain_all`` soon; for implementations of buses."""
        self.keep(channel, data)
        is_new, self._scheduled = not self._scheduled, True
        return is_new

    @staticmethod
    def drain_all(subscriptions: Sequence[Subscription], loop: asyncio.AbstractEventLoop) -> None:
        """Handle what several have queued, in their order: a callback for each would take as long as a message."""
        for subscription in subscriptions:
            subscription._drain(loop)

    def keep(self, channel: str, data: bytes) -> None:
        """Queue one message for ``handle``; for implementations of buses."""
        self._received += 1
        size = len(data)
        if size > self.capacity_bytes or size > MAX_MESSAGE:
            self._dropped += 1
            _log.warning("dropped a message of %d bytes on %s", size, channel)
            return
        if self._queued_bytes + size > self.capacity_bytes and self._is_flood(size):
            self._dropped += 1
            self.may_miss()
            return
        self._queue.append((channel, data))
        self._queued_bytes += size
        self._queued_bits += size.bit_length()
        while len(self._queue) > self._capacity or self._queued_bytes > self.capacity_bytes:
            self._dropped += 1
            self.may_miss()
            self._take()

    def may_miss(self) -> None:
        """Note that there was no room for all that came; for implementations of buses."""
        self.missed_at = clock.monotonic()

    def _take(self) -> tuple[str, bytes]:
        message = self._queue.popleft()
        size = len(message[1])
        self._queued_bytes -= size
        self._queued_bits -= size.bit_length()
        return message

    def _is_flood(self, size: int) -> bool:
        """Return whether a message for which there is no room would push out many that are much smaller: a few large
        ones must not silence all else."""
        return (size.bit_length() - _OUTSIZE) * len(self._queue) > self._queued_bits

    def handle(self, loop: asyncio.AbstractEventLoop) -> None:
        """Handle the first queued messages at once and the rest soon; for buses that the loop itself calls."""
        if not self._scheduled:
            self._scheduled = True
            self._drain(loop)

    def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        queue = self._queue
        until = clock.monotonic() + SLICE_S  # the loop's own time may be in whole milliseconds
        for _ in range(_SLICE):
            if self._closed or not queue:
                break
            channel, data = self._take()
            try:
                self._handler(channel, data)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # that of a cancelled future, too: later messages are handled all the same
                self._errors += 1
                _log.exception("handler of %s failed: %s", channel, error)
            self._handled += 1
            if queue and clock.monotonic() > until:
                break
        if queue and not self._closed:
            loop.call_soon(self._drain, loop)
        else:
            self._scheduled = False

    @property
    def waiting(self) -> int:
        """Messages that are queued behind the one that is being handled."""
        return len(self._queue)

    def statistics(self) -> SubscriptionStatistics:
        """Counts of what has gone through this subscription."""
        return SubscriptionStatistics(self._received, self._handled, self._dropped, self._errors, len(self._queue))

    def close(self) -> None:
        """End it; what is still queued is not handled. Closing twice is fine."""
        if not self._closed:
            self._closed = True
            self._queue.clear()
            self._queued_bytes = self._queued_bits = 0
            self._forget(self)
