"""The protocol of a bus: bytes on named channels, handed to bounded queues on one event loop."""

from __future__ import annotations

import abc
import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Unpack

from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.bus.subscription import DEFAULT_CAPACITY, Handler, Subscription, SubscriptionOptions
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import BusError

TokenHandler = Callable[[str, bool], None]
"""A function that takes the name of a token and whether it is there."""
Wants = Callable[[str], bool]
"""A test of whether messages of a channel are wanted."""

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class BusStatistics:
    """Counts since the bus was opened."""

    published: int
    published_bytes: int
    received: int
    dropped: int
    errors: int


class Bus(abc.ABC):
    """Bytes on named channels. A bus belongs to the event loop on which it was opened.

    Messages of one publisher arrive in order; a bus may lose messages, and publishing never blocks.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._loop: asyncio.AbstractEventLoop | None = None
        self._published = self._published_bytes = 0
        self._past = [0, 0, 0]
        """The counts of subscriptions that have ended: received, dropped, failed."""

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
    def subscribe(self, channel: str, handler: Handler, **options: Unpack[SubscriptionOptions]) -> Subscription:
        """Handle the messages of one channel, named exactly. A message that alone is too large is dropped."""

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

    def _opened_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise BusError(f"the bus {self.url!r} is not open")
        return self._loop


def _nothing() -> None:
    """Do nothing: there is nothing to take back."""
