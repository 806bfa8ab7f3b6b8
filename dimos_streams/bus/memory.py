"""A bus inside one event loop: lossless but for full queues, deterministic, for tests and virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dimos_streams.bus.base import Bus, Wants
from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.bus.subscribers import Subscribers
from dimos_streams.bus.subscription import CAPACITY_BYTES, DEFAULT_CAPACITY, Handler, Subscription


class MemoryBus(Bus):
    """A bus that delivers to every subscription in the order in which they subscribed."""

    def __init__(self, url: str = "memq://") -> None:
        super().__init__(url)
        self._subscribers = Subscribers()

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        for subscription in self.subscriptions():
            subscription.close()
        self._loop = None

    def publish(self, channel: str, data: bytes) -> None:
        loop = self._opened_loop()
        if not self._check_size(channel, data):
            return
        self._count_published(data)
        for subscription in self._subscribers.of(channel):
            subscription.push(loop, channel, data)

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
        self._opened_loop()
        group = self._subscribers.by_channel.setdefault(channel, [])

        def forget(subscription: Subscription) -> None:
            self._keep_counts(subscription)
            group.remove(subscription)
            if not group:
                del self._subscribers.by_channel[channel]

        subscription = Subscription(handler, capacity, capacity_bytes, forget, namespaces=namespaces, largest=largest)
        group.append(subscription)
        return subscription

    def subscribe_all(
        self, handler: Handler, *, capacity: int = DEFAULT_CAPACITY, wants: Wants | None = None
    ) -> Subscription:
        self._opened_loop()

        def forget(subscription: Subscription) -> None:
            self._keep_counts(subscription)
            del self._subscribers.of_all[subscription]

        subscription = Subscription(handler, capacity, CAPACITY_BYTES, forget)
        self._subscribers.of_all[subscription] = wants
        return subscription

    def has_subscribers(self, channel: str) -> bool:
        return any(True for _ in self._subscribers.of(channel))

    def subscriptions(self) -> list[Subscription]:
        return self._subscribers.all()
