"""The part that all buses with a transport have in common: their subscriptions, and the counts of those that have
ended."""

from __future__ import annotations

import abc
import contextlib
import logging
from functools import partial
from typing import Unpack

from dimos_streams.bus.base import Bus, Wants
from dimos_streams.bus.subscribers import Subscribers
from dimos_streams.bus.subscription import DEFAULT_CAPACITY, Handler, Subscription, SubscriptionOptions
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import BusError

_log = LimitedLog(logging.getLogger(__name__))


class TransportBus(Bus):
    """A bus that has subscriptions of its own; a transport says what it does for the first one to a channel, and
    behind the last one."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._subscribers = Subscribers()

    @abc.abstractmethod
    def _listen(self, channel: str | None, capacity_bytes: int) -> None:
        """Begin to take what comes on a channel, or on all if it is None, for a first subscription that queues so
        many bytes at most. Raises ``BusError`` when the bus is not open, or can't listen."""

    @abc.abstractmethod
    def _unlisten(self, channel: str | None) -> None:
        """End what ``_listen`` began."""

    def _on_changed(self) -> None:
        """Called when what is listened to has changed; a transport may renew a filter then. Raises ``BusError`` if it
        can't."""

    def subscribe(self, channel: str, handler: Handler, **options: Unpack[SubscriptionOptions]) -> Subscription:
        forget = partial(self._forget, channel)
        subscription = Subscription(handler, forget, changed=self._follow, **options)
        by_channel = self._subscribers.by_channel
        if channel not in by_channel:
            self._listen(channel, subscription.capacity_bytes)
        by_channel.setdefault(channel, []).append(subscription)
        return self._announced(subscription)

    def subscribe_all(
        self, handler: Handler, *, capacity: int = DEFAULT_CAPACITY, wants: Wants | None = None
    ) -> Subscription:
        subscription = Subscription(handler, self._forget_of_all, capacity=capacity)
        if not self._subscribers.of_all:
            self._listen(None, subscription.capacity_bytes)
        self._subscribers.of_all[subscription] = wants
        return self._announced(subscription)

    def subscriptions(self) -> list[Subscription]:
        return self._subscribers.all()

    def _announced(self, subscription: Subscription) -> Subscription:
        """A new subscription once the transport knows of it. If that fails it is ended: its owner never gets it."""
        try:
            self._on_changed()
        except BaseException:
            with contextlib.suppress(Exception):  # the transport has just said why
                subscription.close()
            raise
        return subscription

    def _close_subscriptions(self) -> None:
        for subscription in self.subscriptions():
            subscription.close()

    def _forget(self, channel: str, subscription: Subscription) -> None:
        self._keep_counts(subscription)
        group = self._subscribers.by_channel[channel]
        group.remove(subscription)
        if not group:
            del self._subscribers.by_channel[channel]
            self._unlisten(channel)
        self._follow()

    def _forget_of_all(self, subscription: Subscription) -> None:
        self._keep_counts(subscription)
        del self._subscribers.of_all[subscription]
        if not self._subscribers.of_all:
            self._unlisten(None)
        self._follow()

    def _follow(self) -> None:
        """Have the transport follow what is wanted besides new subscriptions. Where it can't, more may come than
        anybody wants, or of what is rationed less."""
        try:
            self._on_changed()
        except BusError as error:
            _log.warning("%s", error)

    def _keep_counts(self, subscription: Subscription) -> None:
        now = subscription.statistics()
        for index, count in enumerate((now.received, now.dropped, now.errors)):
            self._past[index] += count
