"""The subscriptions of one bus, by what they are for."""

from __future__ import annotations

from collections.abc import Iterator

from dimos_streams.bus.base import Subscription, Wants


class Subscribers:
    """Those to one channel each, and those to all. Each bus adds and removes them in its way."""

    def __init__(self) -> None:
        self.by_channel: dict[str, list[Subscription]] = {}
        self.of_all: dict[Subscription, Wants | None] = {}
        """With what each of them wants; None is for everything."""

    def of(self, channel: str) -> Iterator[Subscription]:
        """Those that get the messages of a channel, in the order in which they subscribed."""
        yield from self.by_channel.get(channel, ())
        yield from self.wanting(channel)

    def wanting(self, channel: str) -> Iterator[Subscription]:
        """Those to all channels that want this one."""
        for subscription, wants in self.of_all.items():
            if wants is None or wants(channel):
                yield subscription

    def all(self) -> list[Subscription]:
        """Every one."""
        return [s for group in self.by_channel.values() for s in group] + list(self.of_all)
