"""LCM over UDP multicast on an asyncio loop: one LCM object, no threads of ours.

Where LCM's library can't be loaded, ``udpm.py`` takes its place.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.bus import packet_filter
from dimos_streams.bus.lcm import guard
from dimos_streams.bus.lcm.early_datagrams import wait_until_taken
from dimos_streams.bus.lcm.membership import Membership
from dimos_streams.bus.lcm.overflow import Overflow
from dimos_streams.bus.lcm.queue import KEPT_BYTES, LcmQueue
from dimos_streams.bus.lcm.subscription_filter import SubscriptionFilter
from dimos_streams.bus.lcm.thread_placement import ThreadPlacement, threads
from dimos_streams.bus.lcm.udpm import UdpmSocket
from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.bus.subscription import SLICE_S, Handler, Subscription
from dimos_streams.bus.transport_bus import TransportBus
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.disk import check_free_descriptors
from dimos_streams.common.process.threads import check_free_thread
from dimos_streams.errors import BusError

_READING = 0.25
"""The share of the loop's time that taking messages from LCM may have. What a busy loop does not take is lost, and in
a flood the few messages that matter are lost with the rest."""
_MAX_READING_S = 0.02
"""Maximum time of one reading, in seconds; then the loop has its turn, however long its last one took."""
_ALL_KEPT_BYTES = 8 * 1024 * 1024
"""Maximum number of bytes that LCM keeps for a subscription to all channels."""
_SELECT_LIMIT = 1024
_FILES = 12
"""Number of files, more than LCM opens, without which no bus is opened: for want of one its library crashes."""
_AGAIN_S = 0.5
"""Time, in seconds, after which a filter that could not be changed is changed again."""
_LEAST_ROOM = 128
"""Minimum room that a datagram takes in a receive buffer of the size that was asked for, in bytes."""
_NO_GUARD = "no packet guard, a malformed datagram can end this process"

_logger = logging.getLogger(__name__)
_log = LimitedLog(_logger)


class _Lcm(Protocol):
    def fileno(self) -> int: ...
    def handle_timeout(self, timeout_ms: int) -> int: ...
    def publish(self, channel: str, data: bytes) -> None: ...
    def subscribe(self, channel: str, handler: Handler) -> Any: ...
    def unsubscribe(self, subscription: Any) -> None: ...


class LcmBus(TransportBus):
    """LCM's multicast as a bus. Call it only in the thread of the loop that opened it: LCM's objects bear only one
    thread."""

    def __init__(self, url: str) -> None:
        self._url = UdpmUrl.parse(url)
        super().__init__(str(self._url))
        self._lcm: _Lcm | None = None
        self._arrived: dict[Subscription, None] = {}
        self._lcm_subscriptions: dict[str, Any] = {}
        self._queues: dict[str, LcmQueue] = {}
        self._filter = SubscriptionFilter(self._subscribers, self._url)
        self._renewing: asyncio.TimerHandle | None = None
        """The next attempt to change a filter that could not be changed."""
        self._read_at = 0.0
        """The time at which messages were last taken, on the monotonic clock."""
        self._overflow = Overflow()
        self.guarded = False
        """True if malformed datagrams, and those of other channels, are kept from the LCM library by the kernel."""

    async def open(self) -> None:
        if self._lcm is not None:
            return
        try:
            check_free_descriptors(_FILES)
        except OSError as error:
            raise BusError(f"LCM needs {_FILES} files; `ulimit -n` says how many a process may have open") from error
        before, threads_before = packet_filter.open_fds(), threads()
        try:
            self._lcm = self._create()
        except (RuntimeError, OSError) as error:
            raise BusError(self._url.explain_failure()) from error
        # Asking for the descriptor makes LCM open its receiving socket; it tells only once that it could not.
        descriptor = self._lcm.fileno()
        if descriptor < 0:
            self._lcm = None
            raise BusError(self._url.explain_failure())
        if descriptor >= _SELECT_LIMIT and not isinstance(self._lcm, UdpmSocket):
            self._lcm = None
            raise BusError(f"LCM needs a file descriptor below {_SELECT_LIMIT}; too many files are open")
        sockets = guard.sockets_of(before, self._url.port)
        begun = threads() - threads_before
        thread = begun.pop() if len(begun) == 1 else None
        self._attach_guard(sockets, thread)
        if isinstance(self._lcm, UdpmSocket):
            self.guarded = True  # it looks at datagrams before it believes them
        self._loop = asyncio.get_running_loop()
        self._membership = Membership(self._url.group, sockets, self._loop)
        self._placement = ThreadPlacement(thread, self._loop)
        self._loop.add_reader(descriptor, self._read)

    async def close(self) -> None:
        if self._lcm is None:
            return
        self._filter.leave()  # what is let through is of no matter any more
        self._close_subscriptions()
        self._opened_loop().remove_reader(self._lcm.fileno())
        self._membership.close()
        self._end_renewing()
        self._placement.close()
        if isinstance(self._lcm, UdpmSocket):
            self._lcm.close()
        self._lcm = self._loop = None

    @property
    def notice(self) -> str:
        return _NO_GUARD if self._lcm is not None and not self.guarded else ""

    def publish(self, channel: str, data: bytes) -> None:
        lcm = self._opened_lcm()
        if not self._check_size(channel, data):
            return
        try:
            lcm.publish(channel, data)
        except OSError as error:
            _log.warning("cannot publish %d bytes on %s: %s", len(data), channel, error)
            return
        self._count_published(data)
        if channel in self._subscribers.by_channel:
            self._overflow.said(data, clock.monotonic())

    def has_subscribers(self, channel: str) -> bool:
        return True

    def _read(self) -> None:
        lcm, loop = self._opened_lcm(), self._opened_loop()
        now = clock.monotonic()
        until = now + min(max(SLICE_S, (now - self._read_at) * _READING), _MAX_READING_S)
        messages = 0
        is_empty = False
        while now < until and not is_empty:
            is_empty = lcm.handle_timeout(0) <= 0
            messages += not is_empty
            now = clock.monotonic()
        self._read_at = now
        if self._overflow.missed(now):
            _miss(self._subscribers.all())
        for queue in self._queues.values():
            if queue.taken:
                queue.settle(is_empty=is_empty)
        arrived, self._arrived = self._arrived, {}
        # The loop's next turn would be later by as much as most handlers take.
        for subscription in arrived:
            subscription.handle(loop)
        self._placement.note(messages, now)

    def _deliver(self, channel: str, data: bytes) -> None:
        self._overflow.heard(data)
        for subscription in self._subscribers.by_channel.get(channel, ()):
            subscription.keep(channel, data)
            self._arrived[subscription] = None

    def _deliver_to_all(self, channel: str, data: bytes) -> None:
        for subscription in self._subscribers.wanting(channel):
            subscription.keep(channel, data)
            self._arrived[subscription] = None

    def _listen(self, channel: str | None, capacity_bytes: int) -> None:
        pattern = _pattern(channel)
        queue = self._queue(channel, capacity_bytes)
        subscription = self._opened_lcm().subscribe(pattern, queue.put)
        if subscription is None:
            raise BusError(self._url.explain_failure())
        # Our own queues drop the oldest, and count; LCM's fills up only while the loop does not run.
        queue.bound(subscription)
        self._lcm_subscriptions[pattern] = subscription
        self._queues[pattern] = queue

    def _unlisten(self, channel: str | None) -> None:
        pattern = _pattern(channel)
        del self._queues[pattern]
        self._opened_lcm().unsubscribe(self._lcm_subscriptions.pop(pattern))

    def _queue(self, channel: str | None, capacity_bytes: int) -> LcmQueue:
        if channel is None:
            return LcmQueue(self._deliver_to_all, partial(_miss, self._subscribers.of_all), _ALL_KEPT_BYTES)

        def missed() -> None:
            _miss(self._subscribers.by_channel.get(channel, ()))

        return LcmQueue(self._deliver, missed, min(KEPT_BYTES, capacity_bytes // 2))

    def _on_changed(self) -> None:
        self._end_renewing()
        try:
            self._filter.renew()
        except BusError:
            self._renewing = self._opened_loop().call_later(_AGAIN_S, self._follow)
            raise

    def _end_renewing(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None

    def _create(self) -> _Lcm:
        try:
            import lcm
        except ImportError as error:
            why = error.__context__ or error  # lcm hides what is wrong behind a search for other builds
            _logger.info("LCM's library can't be loaded (%s); Python's sockets speak its protocol instead", why)
            return UdpmSocket(self._url)
        try:
            check_free_thread()  # for want of one the library ends the process
        except OSError as error:
            raise BusError(f"LCM needs a thread: {error.strerror}") from error
        created: _Lcm = lcm.LCM(self._url.for_lcm())
        return created

    def _attach_guard(self, sockets: list[int], thread: int | None) -> None:
        """``thread`` is the one that takes what comes to LCM's sockets, None if it is not known."""
        try:
            self._filter.attach(sockets)
            self.guarded = True
            self._forget_early(sockets, thread)
        except OSError as error:
            level = logging.INFO if isinstance(self._lcm, UdpmSocket) else logging.WARNING
            _logger.log(level, "%s: %s", _NO_GUARD, error)
            if self._url.ttl == 0:
                _logger.warning("what other machines send to %s is taken, too: %s", self._url.group, error)

    def _forget_early(self, sockets: list[int], thread: int | None) -> None:
        """Let go of what came before there was a filter, while nobody is there to whom it could be delivered."""
        lcm = self._opened_lcm()
        if isinstance(lcm, UdpmSocket):
            for _ in range(self._url.receive_buffer // _LEAST_ROOM):
                if not lcm.handle_timeout(0):
                    break
        elif thread is not None:
            wait_until_taken(sockets, thread)

    def _opened_lcm(self) -> _Lcm:
        if self._lcm is None:
            raise BusError(f"the bus {self.url!r} is not open")
        return self._lcm


def _pattern(channel: str | None) -> str:
    """Return the regular expression by which LCM knows a channel, or all of them."""
    return ".*" if channel is None else re.escape(channel)


def _miss(subscriptions: Iterable[Subscription]) -> None:
    for subscription in subscriptions:
        subscription.may_miss()
