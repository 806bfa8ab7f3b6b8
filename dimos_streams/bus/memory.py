"""A bus inside one event loop: lossless but for full queues, deterministic, for tests and virtual time."""

from __future__ import annotations

import asyncio

from dimos_streams.bus.subscription import Subscription
from dimos_streams.bus.transport_bus import TransportBus


class MemoryBus(TransportBus):
    """A bus that delivers to every subscription in the order in which they subscribed."""

    def __init__(self, url: str = "memq://") -> None:
        super().__init__(url)

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        self._close_subscriptions()
        self._loop = None

    def publish(self, channel: str, data: bytes) -> None:
        loop = self._opened_loop()
        if not self._check_size(channel, data):
            return
        self._count_published(data)
        woken = [each for each in self._subscribers.of(channel) if each.keep_for_all(channel, data)]
        if woken:
            loop.call_soon(Subscription.drain_all, woken, loop)

    def has_subscribers(self, channel: str) -> bool:
        return any(True for _ in self._subscribers.of(channel))

    def _listen(self, channel: str | None, capacity_bytes: int) -> None:
        self._opened_loop()

    def _unlisten(self, channel: str | None) -> None:
        """Nothing is to be taken back."""
