"""A bus that misbehaves by a seed: loses, doubles, delays and reorders messages, or is cut in two."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from dimos_streams.bus import Bus, Handler, Subscription
from dimos_streams.bus.base import DEFAULT_CAPACITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What happens to messages on their way. Probabilities are for each message, independently."""

    loss: float = 0.0
    duplication: float = 0.0
    delay_s: tuple[float, float] = (0.0, 0.0)
    """Shortest and longest delay. A range wider than the pause between messages reorders them."""
    affects: Callable[[str], bool] = lambda channel: True
    """Which channels suffer."""


@dataclass(frozen=True, slots=True)
class FaultCounts:
    """What has been done to messages so far."""

    passed: int
    lost: int
    doubled: int
    delayed: int


class FaultBus(Bus):
    """One participant's access to another bus, with faults between; each participant can have its own.

    Faults strike what this participant publishes. The same seed and the same messages give the same faults.
    Closing it does not close the bus behind.
    """

    def __init__(self, inner: Bus, faults: Faults, *, seed: int) -> None:
        super().__init__(inner.url)
        self.faults = faults
        self.partitioned = False
        """While True nothing that is published here gets through, and nothing arrives here."""
        self._inner = inner
        self._random = random.Random(seed)
        self._timers: set[asyncio.TimerHandle] = set()
        self._subscriptions: list[Subscription] = []
        self._passed = self._lost = self._doubled = self._delayed = 0

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions.clear()
        self._loop = None

    def publish(self, channel: str, data: bytes) -> None:
        self._opened_loop()
        self._count_published(data)
        faults = self.faults
        if not faults.affects(channel) and not self.partitioned:
            self._inner.publish(channel, data)
            return
        if self.partitioned or self._random.random() < faults.loss:
            self._lost += 1
            return
        self._send(channel, data)
        if self._random.random() < faults.duplication:
            self._doubled += 1
            self._send(channel, data)

    def subscribe(self, channel: str, handler: Handler, *, capacity: int = DEFAULT_CAPACITY) -> Subscription:
        return self._keep(self._inner.subscribe(channel, self._unless_partitioned(handler), capacity=capacity))

    def subscribe_all(self, handler: Handler, *, capacity: int = DEFAULT_CAPACITY) -> Subscription:
        return self._keep(self._inner.subscribe_all(self._unless_partitioned(handler), capacity=capacity))

    def has_subscribers(self, channel: str) -> bool:
        return self._inner.has_subscribers(channel)

    def subscriptions(self) -> list[Subscription]:
        return list(self._subscriptions)

    def counts(self) -> FaultCounts:
        """What has been done so far."""
        return FaultCounts(self._passed, self._lost, self._doubled, self._delayed)

    def _send(self, channel: str, data: bytes) -> None:
        delay = self._random.uniform(*self.faults.delay_s)
        if delay <= 0:
            self._passed += 1
            self._inner.publish(channel, data)
            return
        self._delayed += 1

        def arrive() -> None:
            self._timers.discard(timer)
            if not self.partitioned:
                self._passed += 1
                self._inner.publish(channel, data)

        timer = self._opened_loop().call_later(delay, arrive)
        self._timers.add(timer)

    def _keep(self, subscription: Subscription) -> Subscription:
        self._subscriptions.append(subscription)
        return subscription

    def _unless_partitioned(self, handler: Handler) -> Handler:
        def handle(channel: str, data: bytes) -> None:
            if not self.partitioned:
                handler(channel, data)

        return handle
