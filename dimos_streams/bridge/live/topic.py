"""One live topic, which keeps its newest message and makes a frame of it if somebody wants one."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from dimos_streams.bridge.live.frames import Fault, LiveFrame, Received, frame_of, is_slow
from dimos_streams.bridge.live.kinds import TopicInfo
from dimos_streams.bus import Bus, Subscription
from dimos_streams.bus.sizes import MAX_MESSAGE, ONE_PIECE
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import BusError, MessageError

Making = Callable[[Callable[[], LiveFrame | Fault], Callable[[LiveFrame | Fault], None]], None]
"""Runs the first function elsewhere, and calls the second one on the loop with what it returns. Raises ``OSError`` if
that is not possible at the moment."""

_log = LimitedLog(logging.getLogger(__name__))
_RATE_SPAN = 4
"""Number of measurements over which a rate is averaged."""


class TopicWatcher(Protocol):
    """Somebody who watches a topic."""

    def on_message(self, topic: LiveTopic) -> None:
        """Take note that there is something newer. Must not block."""


class LiveTopic:
    """A topic that is subscribed to while somebody watches it, or wants to know how often something comes."""

    def __init__(self, bus: Bus, info: TopicInfo, utime: Callable[[], int], make: Making) -> None:
        self.info = info
        self.hz: float | None = None
        """Messages a second, None while nobody counts them."""
        self.number = 0
        """The number of the newest message."""
        self._bus = bus
        self._utime = utime
        self._make = make
        self._subscription: Subscription | None = None
        self._watchers: dict[TopicWatcher, None] = {}
        self._counted = False
        self._newest: Received | None = None
        self._frame: LiveFrame | Fault | None = None
        """The newest frame that was made."""
        self._is_making = False
        self._before = 0
        """Number of messages of subscriptions that have ended."""
        self._samples: deque[tuple[float, int]] = deque(maxlen=_RATE_SPAN)

    @property
    def watched(self) -> bool:
        """True if anybody watches it."""
        return bool(self._watchers)

    @property
    def has_newest(self) -> bool:
        """True if the newest message is still there."""
        return self._newest is not None

    def watch(self, watcher: TopicWatcher) -> None:
        """Tell somebody of all that comes from now on. Twice is fine. Raises ``BusError`` if the bus refuses."""
        self._watchers[watcher] = None
        try:
            self._subscribe()
        except BusError:
            del self._watchers[watcher]
            raise

    def unwatch(self, watcher: TopicWatcher) -> None:
        """Tell somebody nothing any more. Twice is fine."""
        self._watchers.pop(watcher, None)
        self._subscribe()

    def count(self, *, wanted: bool) -> None:
        """Count messages even if nobody watches, except those of bulky topics, which nobody should make for that.
        Where the bus has refused, this tries again."""
        self._counted = wanted and not self.info.is_bulky
        self._subscribe()

    def measure(self, now: float) -> None:
        """Take a measurement for ``hz``."""
        if self._subscription is None:
            return
        self._samples.append((now, self._before + self._subscription.statistics().received))
        (since, first), (_, last) = self._samples[0], self._samples[-1]
        if now > since:
            self.hz = round((last - first) / (now - since), 1)

    def newer_than(self, number: int) -> LiveFrame | Fault | None:
        """The newest frame if its number is larger. None if there is none or it is being made; watchers are told."""
        if self._newest is None or self.number <= number:
            return None
        if self._frame is None or self._frame.number < self.number:
            self._begin(self._newest)
        return self._frame if self._frame is not None and self._frame.number > number else None

    def _begin(self, newest: Received) -> None:
        """Make a frame of the newest message, now or elsewhere. One at a time: what comes meanwhile is left out."""
        if self._is_making:
            return
        try:
            slow = is_slow(self.info, newest.data)
        except MessageError as error:
            self._frame = Fault(newest.number, str(error))
            return
        if not slow:
            self._frame = _made(self.info, newest)
            return
        try:
            self._make(partial(_made, self.info, newest), self._on_made)
            self._is_making = True
        except OSError as error:
            self._frame = Fault(newest.number, f"{self.info.channel} can't be shown: {error.strerror}")

    def _on_made(self, made: LiveFrame | Fault) -> None:
        self._is_making = False
        if self._watchers:
            self._frame = made
            self._notify()

    def _on_message(self, channel: str, data: bytes) -> None:
        if self._watchers:
            self.number += 1
            self._newest = Received(data, self._utime(), self.number)
            self._notify()

    def _notify(self) -> None:
        for watcher in list(self._watchers):
            watcher.on_message(self)

    def _subscribe(self) -> None:
        """Subscribe to as much as is wanted now. Raises ``BusError`` if the bus refuses and somebody watches."""
        wanted = MAX_MESSAGE if self._watchers else ONE_PIECE if self._counted else 0
        if wanted == (self._subscription.largest if self._subscription is not None else 0):
            return
        if self._subscription is not None:
            self._before += self._subscription.statistics().received
            self._subscription.close()
            self._subscription = None
        if not self._watchers:
            self._newest = self._frame = None
        try:
            if wanted:
                self._subscription = self._bus.subscribe(
                    self.info.channel, self._on_message, capacity=1, largest=wanted
                )
        except BusError as error:
            if self._watchers:
                raise
            _log.warning("what comes on %s can't be counted: %s", self.info.channel, error)
        if self._subscription is None:
            self._samples.clear()
            self.hz = None


def _made(info: TopicInfo, newest: Received) -> LiveFrame | Fault:
    try:
        return frame_of(info, newest)
    except Exception as error:  # whatever a robot sends costs nobody else anything
        _log.exception("no frame of %s: %s", info.channel, error)
        return Fault(newest.number, f"{info.channel} can't be shown: {error!r}")
