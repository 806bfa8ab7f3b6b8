"""The protocol of a bus: bytes on named channels, handed to bounded queues on one event loop."""

from __future__ import annotations

import abc
import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import BusError

Handler = Callable[[str, bytes], None]
"""A function that takes a channel and a payload. It runs on the loop, must not block, and is never called from inside
``publish``."""
TokenHandler = Callable[[str, bool], None]
"""A function that takes the name of a token and whether it is there."""
Wants = Callable[[str], bool]
"""A test of whether messages of a channel are wanted."""

DEFAULT_CAPACITY = 8192
CAPACITY_BYTES = 16 * 1024 * 1024
"""The bytes that a subscription's queue holds at most, whatever its capacity in messages."""
MAX_MESSAGE = 8 * 1024 * 1024
"""Maximum size of a message, in bytes. Larger ones are not published, and are thrown away where they come in."""
ONE_PIECE = 65_000
"""Maximum size of a message that is one datagram, in bytes; it needs no memory for fragments of which others are
missing."""
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


@dataclass(frozen=True, slots=True)
class BusStatistics:
    """Counts since the bus was opened."""

    published: int
    published_bytes: int
    received: int
    dropped: int
    errors: int


class Subscription:
    """One handler with its own bounded queue. When the queue is full, the oldest messages are dropped; a new one that
    is much larger than those is dropped itself."""

    def __init__(
        self,
        handler: Handler,
        capacity: int,
        capacity_bytes: int,
        forget: Callable[[Subscription], None],
        *,
        namespaces: Sequence[str] | None = None,
        largest: int = MAX_MESSAGE,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """``forget`` is called at its end, ``changed`` when it wants other messages."""
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity!r}")
        self.namespaces = namespaces
        self.largest = min(largest, capacity_bytes, MAX_MESSAGE)
        """Maximum size of a message whose fragments need be put together, in bytes."""
        self.ration: Ration | None = None
        """See ``take_only``."""
        self._changed = changed
        self._handler = handler
        self._capacity, self._capacity_bytes = capacity, capacity_bytes
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
        self.keep(channel, data)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._drain, loop)

    def keep(self, channel: str, data: bytes) -> None:
        """Queue one message for ``handle``; for implementations of buses."""
        self._received += 1
        size = len(data)
        if size > self._capacity_bytes or size > MAX_MESSAGE:
            self._dropped += 1
            _log.warning("dropped a message of %d bytes on %s", size, channel)
            return
        if self._queued_bytes + size > self._capacity_bytes and self._is_flood(size):
            self._dropped += 1
            self.may_miss()
            return
        self._queue.append((channel, data))
        self._queued_bytes += size
        self._queued_bits += size.bit_length()
        while len(self._queue) > self._capacity or self._queued_bytes > self._capacity_bytes:
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
        until = clock.monotonic() + SLICE_S  # the loop's own time may be in whole milliseconds
        for _ in range(_SLICE):
            if self._closed or not self._queue:
                break
            channel, data = self._take()
            try:
                self._handler(channel, data)
            except Exception as error:
                self._errors += 1
                _log.exception("handler of %s failed: %s", channel, error)
            self._handled += 1
            if self._queue and clock.monotonic() > until:
                break
        if self._queue and not self._closed:
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


class Bus(abc.ABC):
    """Bytes on named channels. A bus belongs to the event loop on which it was opened.

    Messages of one publisher arrive in order; a bus may lose messages, and publishing never blocks.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._loop: asyncio.AbstractEventLoop | None = None
        self._published = self._published_bytes = 0
        self._past = [0, 0, 0]

    @abc.abstractmethod
    async def open(self) -> None:
        """Begin. Raises ``BusError`` if the transport can't be had."""

    @abc.abstractmethod
    async def close(self) -> None:
        """End all subscriptions and free the transport. Closing twice is fine."""

    @abc.abstractmethod
    def publish(self, channel: str, data: bytes) -> None:
        """Send one message. Raises ``BusError`` when the bus is not open."""

    @abc.abstractmethod
    def subscribe(
        self,
        channel: str,
        handler: Handler,
        *,
        capacity: int = DEFAULT_CAPACITY,
        capacity_bytes: int = CAPACITY_BYTES,
        namespaces: Sequence[str] | None = None,
        largest: int = MAX_MESSAGE,
    ) -> Subscription:
        """Handle the messages of one channel, named exactly. A message that alone is too large is dropped.

        One of more than ``largest`` bytes need not come: a transport that puts fragments together may leave it out.

        ``namespaces`` is for channels on which modules speak of themselves: what modules of others say need not be
        handled. Prefixes, as ``"robot1/"``; what is in none is always handled.
        """

    @abc.abstractmethod
    def subscribe_all(
        self, handler: Handler, *, capacity: int = DEFAULT_CAPACITY, wants: Wants | None = None
    ) -> Subscription:
        """Handle the messages of every channel, or of those that ``wants`` says True to."""

    @abc.abstractmethod
    def has_subscribers(self, channel: str) -> bool:
        """Return True if somebody may be listening; False only if it is certain that nobody is."""

    @abc.abstractmethod
    def subscriptions(self) -> list[Subscription]:
        """Return all open subscriptions."""

    def declare_token(self, name: str) -> Callable[[], None]:
        """Show others a token that vanishes with this process, where the transport has such.

        The returned function takes it back, and may be called twice.
        """
        return _nothing

    def watch_tokens(self, handler: TokenHandler) -> Callable[[], None]:
        """Report other processes' tokens to a handler, where a token that vanishes means that its process has ended.

        The returned function ends the reports, and may be called twice.
        """
        return _nothing

    @property
    def notice(self) -> str:
        """One line for people about the state of the bus; empty if there is nothing to know."""
        return ""

    def statistics(self) -> BusStatistics:
        """Counts of what has gone through this bus, in this process, ended subscriptions included."""
        received, dropped, errors = self._past
        for subscription in self.subscriptions():
            now = subscription.statistics()
            received, dropped, errors = received + now.received, dropped + now.dropped, errors + now.errors
        return BusStatistics(self._published, self._published_bytes, received, dropped, errors)

    def _check_size(self, channel: str, data: bytes) -> bool:
        """Return whether a message is small enough to be sent: receivers would throw away a larger one."""
        if len(data) > MAX_MESSAGE:
            _log.warning("cannot publish %d bytes on %s: %d are possible", len(data), channel, MAX_MESSAGE)
        return len(data) <= MAX_MESSAGE

    def _count_published(self, data: bytes) -> None:
        self._published += 1
        self._published_bytes += len(data)

    def _keep_counts(self, subscription: Subscription) -> None:
        now = subscription.statistics()
        for index, count in enumerate((now.received, now.dropped, now.errors)):
            self._past[index] += count

    def _opened_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise BusError(f"the bus {self.url!r} is not open")
        return self._loop


def _nothing() -> None:
    """Do nothing: there is nothing to take back."""
