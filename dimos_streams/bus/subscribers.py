"""The subscriptions of one bus, to single channels and to all."""

from __future__ import annotations

from collections.abc import Iterator

from dimos_streams.bus.base import Wants
from dimos_streams.bus.subscription import Subscription


class Subscribers:
    """Subscriptions to one channel each, and subscriptions to all channels."""

    def __init__(self) -> None:
        self.by_channel: dict[str, list[Subscription]] = {}
        self.of_all: dict[Subscription, Wants | None] = {}
        """Subscriptions to all channels, each with the test of what it wants; None if it wants everything."""

    def of(self, channel: str) -> Iterator[Subscription]:
        """Yield the subscriptions that get the messages of a channel: those to it alone, then those to all that want
        it."""
        yield from self.by_channel.get(channel, ())
        if self.of_all:
            yield from self.wanting(channel)

    def wanting(self, channel: str) -> Iterator[Subscription]:
        """Yield the subscriptions to all channels that want this one."""
        for subscription, wants in self.of_all.items():
            if wants is None or wants(channel):
                yield subscription

    def all(self) -> list[Subscription]:
        """Return every subscription."""
        return [s for group in self.by_channel.values() for s in group] + list(self.of_all)
