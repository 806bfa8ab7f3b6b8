"""The queue in which LCM's library keeps messages of one subscription until they are taken, bounded in bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dimos_streams.bus.base import Handler

MOST = 8192
"""Messages that LCM keeps at most, the oldest;"""
LEAST = 8
"""at least, however large they are;"""
KEPT_BYTES = 512 * 1024
"""and in between, as many as have so many bytes together, or half of what the handler's own queue may have."""
_LARGER, _SMALLER = 1 / 16, 1 / 64
"""What the next message counts in the mean of their sizes. Sizes that vary are taken to be large ones: by a mean that
follows both as fast, many large ones would be kept because those before were small."""


class LcmSubscription(Protocol):
    """LCM's own, or what stands for it."""

    def set_queue_capacity(self, capacity: int) -> None:
        """In messages."""


class LcmQueue:
    """Passes messages on, and keeps LCM's queue as long as their sizes allow.

    LCM's thread takes what comes while the loop is held up, counts it in messages, and does not give back the memory
    that they have once filled: 8192 large ones are half a gigabyte.
    """

    def __init__(self, deliver: Handler, miss: Callable[[], None], kept_bytes: int = KEPT_BYTES) -> None:
        """``deliver`` gets each message; ``miss`` is called where LCM may have thrown some away."""
        self._deliver = deliver
        self._miss = miss
        self._kept_bytes = kept_bytes
        self._mean = self._from = self._to = 0.0
        self._subscription: LcmSubscription | None = None
        self._capacity = 0
        self.taken = 0
        """Messages that were passed on since it was empty last."""

    def bound(self, subscription: LcmSubscription) -> None:
        """Bound a subscription of which ``take`` is the handler."""
        self._subscription = subscription
        self._fit()

    def put(self, channel: str, data: bytes) -> None:
        """Pass one on."""
        self.taken += 1
        more = len(data) - self._mean
        self._mean += more * (_LARGER if more > 0 else _SMALLER)
        if not self._from <= self._mean <= self._to:
            self._fit()
        self._deliver(channel, data)

    def settle(self, *, is_empty: bool) -> None:
        """Note whether LCM's queue is empty now. Before, it may have been full and thrown messages away, if as many
        as it holds were passed on."""
        if self.taken >= self._capacity:
            self.taken = 0
            self._miss()
        elif is_empty:
            self.taken = 0

    def _fit(self) -> None:
        mean = max(self._mean, self._kept_bytes / MOST)
        self._from = mean / 2 if mean == self._mean else 0.0
        self._to = mean * 1.5
        self._capacity = max(LEAST, int(self._kept_bytes / mean))
        if self._subscription is not None:
            self._subscription.set_queue_capacity(self._capacity)
