"""The queue in which LCM's library keeps messages of one subscription until they are taken, bounded in bytes."""

from __future__ import annotations

from typing import Protocol

from dimos_streams.bus.base import Handler

MOST = 8192
"""Messages that LCM keeps at most, the oldest;"""
LEAST = 8
"""at least, however large they are;"""
KEPT_BYTES = 512 * 1024
"""and in between, as many as have so many bytes together."""
_WEIGHT = 1 / 16


class LcmSubscription(Protocol):
    """LCM's own, or what stands for it."""

    def set_queue_capacity(self, capacity: int) -> None:
        """In messages."""


class LcmQueue:
    """Passes messages on, and keeps LCM's queue as long as their sizes allow.

    LCM's thread takes what comes while the loop is held up, counts it in messages, and does not give back the memory
    that they have once filled: 8192 large ones are half a gigabyte.
    """

    def __init__(self, deliver: Handler, kept_bytes: int = KEPT_BYTES) -> None:
        """``deliver`` gets each message."""
        self._deliver = deliver
        self._kept_bytes = kept_bytes
        self._mean = self._from = self._to = 0.0
        self._subscription: LcmSubscription | None = None

    def bound(self, subscription: LcmSubscription) -> None:
        """Bound a subscription of which ``take`` is the handler."""
        self._subscription = subscription
        self._fit()

    def put(self, channel: str, data: bytes) -> None:
        """Pass one on."""
        self._mean += (len(data) - self._mean) * _WEIGHT
        if not self._from <= self._mean <= self._to:
            self._fit()
        self._deliver(channel, data)

    def _fit(self) -> None:
        mean = max(self._mean, self._kept_bytes / MOST)
        self._from = mean / 2 if mean == self._mean else 0.0
        self._to = mean * 1.5
        if self._subscription is not None:
            self._subscription.set_queue_capacity(max(LEAST, int(self._kept_bytes / mean)))
