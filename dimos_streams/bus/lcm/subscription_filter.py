"""The packet filter of one bus, which follows what its subscriptions want."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.bus.lcm import guard
from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.bus.subscribers import Subscribers
from dimos_streams.bus.subscription import Ration, Subscription
from dimos_streams.errors import BusError


class SubscriptionFilter:
    """Has the kernel let through what is listened to on a bus, and nothing else."""

    def __init__(self, subscribers: Subscribers, url: UdpmUrl) -> None:
        self._subscribers = subscribers
        self._url = url
        self._sockets: list[int] = []
        """File descriptors of the receiving sockets; empty if the kernel does not filter what they get."""
        self._let_through: guard.Channels | None = None

    def attach(self, sockets: list[int]) -> None:
        """Begin to filter what sockets get. Raises ``OSError`` where there is none, or the system has no filters."""
        self._let_through = self._heard()
        for fd in sockets:
            self._attach(fd, self._let_through)
        if not sockets:
            raise OSError("the receiving socket was not found")
        self._sockets = sockets

    def leave(self) -> None:
        """Let the sockets keep the filter that they have: they are about to be closed."""
        self._sockets = []

    def renew(self) -> None:
        """Let through what is listened to now. Raises ``BusError`` if the filter can't be changed."""
        heard = self._heard()
        if heard == self._let_through:
            return
        try:
            for fd in self._sockets:
                self._attach(fd, heard)
            self._let_through = heard
        except OSError as error:
            raise BusError(f"the packet filter of bus {str(self._url)!r} can't be changed: {error}") from error

    def _attach(self, fd: int, channels: guard.Channels | None) -> None:
        guard.attach(fd, channels, of_this_machine=self._url.ttl == 0)

    def _heard(self) -> guard.Channels | None:
        """Return the channels that are listened to, or None if all are."""
        if self._subscribers.of_all:
            return None
        return {
            channel: guard.ListenedChannel(
                _namespaces_of(group), max((each.largest for each in group), default=0), _ration_of(group)
            )
            for channel, group in self._subscribers.by_channel.items()
        }


def _namespaces_of(group: Iterable[Subscription]) -> guard.Namespaces | None:
    """Return the namespaces that the subscriptions of a channel want together, or None if one of them wants all."""
    found: dict[str, None] = {}
    for subscription in group:
        if subscription.namespaces is None:
            return None
        found.update(dict.fromkeys(subscription.namespaces))
    return tuple(found)


def _ration_of(group: Iterable[Subscription]) -> Ration | None:
    """Return the smallest ration that gives each subscription of a channel what it wants; None if one wants all."""
    rations = [subscription.ration for subscription in group]
    if not rations or None in rations:
        return None
    known = [ration for ration in rations if ration is not None]
    marks = dict.fromkeys(mark for ration in known for mark in ration.marks)
    return Ration(max(ration.share for ration in known), tuple(marks))
