"""A bus that misbehaves by a seed: loses, doubles, delays and reorders messages, or is cut in two."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Unpack

from dimos_streams.bus import Bus, Handler, Subscription
from dimos_streams.bus.base import TokenHandler, Wants
from dimos_streams.bus.subscription import DEFAULT_CAPACITY, SubscriptionOptions
from dimos_streams.errors import UserError


def _every(channel: str) -> bool:
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The faults that befall messages on their way. Probabilities are for each message, independently."""

    loss: float = 0.0
    duplication: float = 0.0
    delay_s: tuple[float, float] = (0.0, 0.0)
    """Shortest and longest delay. A range wider than the pause between messages reorders them."""
    affects: Callable[[str], bool] = _every
    """A test of which channels suffer; a module's function, where the faults are to reach other processes."""

    def __post_init__(self) -> None:
        """Raise ``UserError`` for faults that can't be."""
        for name, share in (("loss", self.loss), ("duplication", self.duplication)):
            if not (_is_number(share) and 0 <= share <= 1):
                raise UserError(f"{name}={share!r}: it must be a probability, from 0 to 1")
        bounds = self.delay_s
        is_pair = isinstance(bounds, tuple | list) and len(bounds) == 2 and all(map(_is_number, bounds))
        if not (is_pair and 0 <= bounds[0] <= bounds[1] < math.inf):
            wanted = "the shortest and the longest delay, in seconds, as in delay_s=(0.0, 0.05)"
            raise UserError(f"delay_s={bounds!r}: it must be {wanted}")

    @property
    def perfect(self) -> bool:
        """True if there are no faults at all."""
        return not (self.loss or self.duplication or self.delay_s[1])


@dataclass(frozen=True, slots=True)
class FaultCounts:
    """The counts of the faults so far."""

    passed: int
    lost: int
    doubled: int
    delayed: int


class FaultBus(Bus):
    """One participant's access to another bus, with faults between; each participant can have its own.

    ``faults`` strike what this participant publishes, ``arriving`` what each of its subscriptions receives. The
    same seed and the same messages give the same faults. Closing it does not close the bus behind.
    """

    def __init__(self, inner: Bus, faults: Faults, *, seed: int, arriving: Faults | None = None) -> None:
        super().__init__(inner.url)
        self.faults = faults
        self.arriving = arriving or Faults()
        self.partitioned = False
        """True if nothing that is published here gets through, and nothing arrives here."""
        self._inner = inner
        self._cut = False
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

    def cut(self) -> None:
        """End this participant as its death would: it sends and hears nothing more; what is under way arrives."""
        self._cut = True

    def publish(self, channel: str, data: bytes) -> None:
        self._opened_loop()
        self._count_published(data)
        if self._cut or self.partitioned:
            self._lost += 1
            return
        self._strike(self.faults, channel, data, self._send)

    def subscribe(self, channel: str, handler: Handler, **options: Unpack[SubscriptionOptions]) -> Subscription:
        return self._keep(self._inner.subscribe(channel, self._arriving(handler), **options))

    def subscribe_all(
        self, handler: Handler, *, capacity: int = DEFAULT_CAPACITY, wants: Wants | None = None
    ) -> Subscription:
        return self._keep(self._inner.subscribe_all(self._arriving(handler), capacity=capacity, wants=wants))

    def has_subscribers(self, channel: str) -> bool:
        return self._inner.has_subscribers(channel)

    def declare_token(self, name: str) -> Callable[[], None]:
        return self._inner.declare_token(name)

    def watch_tokens(self, handler: TokenHandler) -> Callable[[], None]:
        return self._inner.watch_tokens(handler)

    def subscriptions(self) -> list[Subscription]:
        """Return this participant's subscriptions that the wrapped bus still has, since they are closed there."""
        still_open = set(self._inner.subscriptions())
        self._subscriptions = [each for each in self._subscriptions if each in still_open]
        return list(self._subscriptions)

    def counts(self) -> FaultCounts:
        """The counts of the faults so far."""
        return FaultCounts(self._passed, self._lost, self._doubled, self._delayed)

    def _strike(self, faults: Faults, channel: str, data: bytes, deliver: Handler) -> None:
        """Pass a message on to ``deliver`` never, once or twice, at once or later."""
        if not faults.affects(channel):
            self._passed += 1
            deliver(channel, data)
            return
        if self._random.random() < faults.loss:
            self._lost += 1
            return
        self._delay(faults, channel, data, deliver)
        if self._random.random() < faults.duplication:
            self._doubled += 1
            self._delay(faults, channel, data, deliver)

    def _delay(self, faults: Faults, channel: str, data: bytes, deliver: Handler) -> None:
        delay = self._random.uniform(*faults.delay_s)
        self._passed += 1
        if delay <= 0:
            deliver(channel, data)
            return
        self._delayed += 1

        def arrive() -> None:
            self._timers.discard(timer)
            deliver(channel, data)

        timer = self._opened_loop().call_later(delay, arrive)
        self._timers.add(timer)

    def _send(self, channel: str, data: bytes) -> None:
        if self.partitioned:
            self._lost += 1
        else:
            self._inner.publish(channel, data)

    def _arriving(self, handler: Handler) -> Handler:
        def handle(channel: str, data: bytes) -> None:
            if not (self._cut or self.partitioned):
                handler(channel, data)

        def strike(channel: str, data: bytes) -> None:
            if self._cut or self.partitioned:
                return
            if self.arriving.perfect:
                handler(channel, data)
            else:
                self._strike(self.arriving, channel, data, handle)

        return strike

    def _keep(self, subscription: Subscription) -> Subscription:
        self._subscriptions = [*self.subscriptions(), subscription]
        return subscription
