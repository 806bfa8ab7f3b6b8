"""The queue in which LCM's library keeps messages of one subscription until they are taken, bounded in bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dimos_streams.bus.subscription import Handler

MOST = 8192
"""Maximum number of messages that LCM keeps; it keeps the oldest."""
LEAST = 8
"""Minimum number of messages that LCM keeps, however large they are."""
KEPT_BYTES = 512 * 1024
"""Bytes of messages that LCM keeps, between these limits, or half of what the handler's own queue may hold, if that
is less."""
_LARGER, _SMALLER = 1 / 16, 1 / 64
"""Weight of the next message in the mean of the sizes, if it is larger than the mean, and if it is smaller. Sizes
that vary are taken to be large ones: with one weight for both, many large messages would be kept because those before
were small."""


class LcmSubscription(Protocol):
    """A subscription of LCM's library, or what stands in for it."""

    def set_queue_capacity(self, capacity: int) -> None:
        """Set the capacity of its queue, in messages."""


class LcmQueue:
    """A handler that passes messages on, and bounds LCM's queue by their sizes.

    LCM's thread takes what comes while the loop is held up. It bounds its queue in messages, and does not give back
    the memory that they have once filled: 8192 large ones are half a gigabyte.
    """

    def __init__(self, deliver: Handler, miss: Callable[[], None], kept_bytes: int = KEPT_BYTES) -> None:
        """``deliver`` gets each message; ``miss`` is called when LCM may have thrown some away."""
        self._deliver = deliver
        self._miss = miss
        self._kept_bytes = kept_bytes
        self._mean = self._from = self._to = 0.0
        self._subscription: LcmSubscription | None = None
        self._capacity = 0
        self.taken = 0
        """Number of messages passed on since LCM's queue was last empty."""

    def bound(self, subscription: LcmSubscription) -> None:
        """Bound the queue of a subscription whose handler is ``put``."""
        self._subscription = subscription
        self._fit()

    def put(self, channel: str, data: bytes) -> None:
        """Pass one message on."""
        self.taken += 1
        more = len(data) - self._mean
        self._mean += more * (_LARGER if more > 0 else _SMALLER)
        if not self._from <= self._mean <= self._to:
            self._fit()
        self._deliver(channel, data)

    def settle(self, *, is_empty: bool) -> None:
        """Note whether LCM's queue is empty now. If as many messages were passed on as it holds, it may have been
        full and have thrown some away."""
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
