"""A bus over Zenoh: peers that link directly, with keys in the form of dimos'."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from dimos_streams.bus.base import TokenHandler
from dimos_streams.bus.delivery import Delivery, delivery_of, urgency_of
from dimos_streams.bus.subscription import Subscription
from dimos_streams.bus.transport_bus import TransportBus
from dimos_streams.bus.zenoh.reader import CHANNEL_CAPACITY, Batch, SampleReader
from dimos_streams.bus.zenoh.session import close_session, in_thread, open_session
from dimos_streams.bus.zenoh.tokens import declare_token, watch_tokens
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.secrets import know_url, redacted
from dimos_streams.errors import BusError

if TYPE_CHECKING:
    import zenoh

_KEPT_SAMPLES = 4096
"""Number of messages of a reliable channel that its sender keeps for those who missed them."""
_MISS_DETECTION_S = 0.25
"""Interval, in seconds, at which the sender of a reliable channel says which message was its last."""
_MAX_PUBLISHERS = 1024
_MAX_CHANNELS = 4096
"""Number of channels whose keys are not read again with each of their messages."""
_UNDECLARED_WITHIN_S = 2.0

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class _Source:
    """A subscriber of Zenoh, and the thread that takes what it gets."""

    subscriber: zenoh.Subscriber[Any] | zenoh.ext.AdvancedSubscriber[Any]
    reader: SampleReader

    def undeclare(self) -> None:
        """End both. It may wait for answers from the other end of a link that is cut."""
        self.subscriber.undeclare()  # type: ignore[no-untyped-call]
        self.reader.join()


class ZenohBus(TransportBus):
    """A bus that publishes and subscribes on the loop that opened it; everything that may take time runs in threads.

    Subscribers of reliable channels ask their senders again for what they missed. Nothing blocks: what there is no
    room for on a link is dropped.
    """

    def __init__(self, url: str, delivery: Mapping[str, Delivery] | None = None) -> None:
        """``delivery`` has the deliveries of topics, where the default is not the right one."""
        self._url = ZenohUrl.parse(url)
        know_url(url)
        super().__init__(redacted(str(self._url)))
        self._keys = self._url.key_space
        self._channel_of = lru_cache(_MAX_CHANNELS)(self._keys.channel_of)
        self._delivery = delivery or {}
        self._session: zenoh.Session | None = None
        self._publishers: OrderedDict[str, zenoh.Publisher | zenoh.ext.AdvancedPublisher] = OrderedDict()
        self._sources: dict[str | None, _Source] = {}
        """Sources by channel; that of None has all channels."""
        self._undeclaring: dict[asyncio.Future[None], None] = {}

    async def open(self) -> None:
        if self._session is not None:
            return
        self._session = await open_session(self._url)
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        if self._session is None:
            return
        self._close_subscriptions()
        session, self._session, self._loop = self._session, None, None
        publishers, self._publishers = self._publishers, OrderedDict()
        if self._undeclaring:
            await asyncio.wait(self._undeclaring, timeout=_UNDECLARED_WITHIN_S)
        await close_session(session, publishers.clear)

    @property
    def notice(self) -> str:
        if self._session is None or self._url.mode != "client" or self._session.info.routers_zid():
            return ""
        at = ", ".join(self._url.endpoints)
        return f"no link to the Zenoh router at {at}: nothing gets to other processes, or comes from them"

    def publish(self, channel: str, data: bytes) -> None:
        loop = self._opened_loop()
        if not self._check_size(channel, data):
            return
        import zenoh

        try:
            self._publisher(channel).put(data)
        except zenoh.ZError as error:
            _log.warning("cannot publish %d bytes on %s: %s", len(data), channel, error)
            return
        self._count_published(data)
        # Whoever listens in this process gets it without a way around.
        for subscription in self._subscribers.of(channel):
            subscription.push(loop, channel, data)

    def has_subscribers(self, channel: str) -> bool:
        if any(True for _ in self._subscribers.of(channel)):
            return True
        import zenoh

        publisher = self._publisher(channel)
        if not isinstance(publisher, zenoh.Publisher):
            return True
        matching: bool = cast("Any", publisher.matching_status).matching  # its stubs say that it is a bool
        return matching

    def declare_token(self, name: str) -> Callable[[], None]:
        return declare_token(self._opened_session(), self._keys.prefix, name)

    def watch_tokens(self, handler: TokenHandler) -> Callable[[], None]:
        if self._url.mode == "client":  # its router's end is not that of the others
            return super().watch_tokens(handler)
        return watch_tokens(self._opened_session(), self._keys.prefix, handler)

    def _listen(self, channel: str | None, capacity_bytes: int) -> None:
        if channel is None:
            self._sources[None] = self._source(self._keys.everything, "latest", self._deliver_to_all)
            return
        key, delivery = self._keys.key_of(channel), delivery_of(channel, self._delivery)
        self._sources[channel] = self._source(key, delivery, partial(self._deliver, channel))

    def _unlisten(self, channel: str | None) -> None:
        source = self._sources.pop(channel)
        source.reader.end()
        self._undeclare(source.undeclare)

    def _undeclare(self, undeclare: Callable[[], None]) -> None:
        undeclaring = in_thread(undeclare, "zenoh-undeclare")
        self._undeclaring[undeclaring] = None
        undeclaring.add_done_callback(self._undeclared)

    def _deliver(self, channel: str, batch: Batch, missed: bool) -> None:
        for subscription in tuple(self._subscribers.by_channel.get(channel, ())):
            for _, data in batch:
                subscription.keep(channel, data)
            self._delivered(subscription, missed=missed)

    def _deliver_to_all(self, batch: Batch, missed: bool) -> None:
        named = [(channel, data) for key, data in batch if (channel := self._channel_of(key)) is not None]
        if len(named) < len(batch):
            _log.warning("left out %d messages: their keys are those of no channel", len(batch) - len(named))
        for subscription, wants in tuple(self._subscribers.of_all.items()):
            for channel, data in named:
                if wants is None or wants(channel):
                    subscription.keep(channel, data)
            self._delivered(subscription, missed=missed)

    def _delivered(self, subscription: Subscription, *, missed: bool) -> None:
        if missed:
            subscription.may_miss()
        subscription.handle(self._opened_loop())

    def _source(self, key: str, delivery: Delivery, deliver: Callable[[Batch, bool], None]) -> _Source:
        session = self._opened_session()
        from zenoh import Locality, ext, handlers

        channel: handlers.FifoChannel[zenoh.Sample] = handlers.FifoChannel(CHANNEL_CAPACITY)
        origin = Locality.REMOTE
        subscriber: zenoh.Subscriber[Any] | zenoh.ext.AdvancedSubscriber[Any]
        if delivery == "latest":
            subscriber = session.declare_subscriber(key, channel, allowed_origin=origin)
        else:
            recovery = ext.RecoveryConfig(periodic_queries=None, heartbeat=True)
            subscriber = ext.declare_advanced_subscriber(
                session, key, channel, allowed_origin=origin, recovery=recovery
            )
        reader = SampleReader(self._opened_loop(), deliver, f"zenoh {key}")
        try:
            reader.start(subscriber.handler)
        except OSError as error:
            self._undeclare(subscriber.undeclare)
            raise BusError(f"what comes on {key} can't be read: {error.strerror}") from error
        return _Source(subscriber, reader)

    def _undeclared(self, undeclaring: asyncio.Future[None]) -> None:
        self._undeclaring.pop(undeclaring, None)
        if not undeclaring.cancelled() and undeclaring.exception() is not None:
            _log.warning("a subscription could not be taken back: %s", undeclaring.exception())

    def _publisher(self, channel: str) -> zenoh.Publisher | zenoh.ext.AdvancedPublisher:
        found = self._publishers.get(channel)
        if found is None:
            found = self._publishers[channel] = self._declare(channel)
            if len(self._publishers) > _MAX_PUBLISHERS:
                self._publishers.popitem(last=False)
        self._publishers.move_to_end(channel)  # what goes is what was used least recently
        return found

    def _declare(self, channel: str) -> zenoh.Publisher | zenoh.ext.AdvancedPublisher:
        session = self._opened_session()
        from zenoh import CongestionControl, Locality, Priority, Reliability, ext

        priorities = {"urgent": Priority.INTERACTIVE_HIGH, "usual": Priority.DATA, "bulky": Priority.DATA_LOW}
        key, priority = self._keys.key_of(channel), priorities[urgency_of(channel)]
        if delivery_of(channel, self._delivery) == "latest":
            return session.declare_publisher(
                key,
                congestion_control=CongestionControl.DROP,
                priority=priority,
                reliability=Reliability.BEST_EFFORT,
                allowed_destination=Locality.REMOTE,
            )
        return ext.declare_advanced_publisher(
            session,
            key,
            congestion_control=CongestionControl.DROP,
            priority=priority,
            allowed_destination=Locality.REMOTE,
            cache=ext.CacheConfig(_KEPT_SAMPLES),
            sample_miss_detection=ext.MissDetectionConfig(heartbeat=_MISS_DETECTION_S, sporadic_heartbeat=None),
        )

    def _opened_session(self) -> zenoh.Session:
        if self._session is None:
            raise BusError(f"the bus {self.url!r} is not open")
        return self._session
