"""A limit on messages that can wait, where so many come that those of known senders would drown among them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

from dimos_streams import clock
from dimos_streams.bus import Subscription
from dimos_streams.bus.subscription import Mark, Ration

MAX_MARKS = 24
MARK_BYTES = 12
"""Length of a mark, in bytes. Only the end of what is known of a message is compared: the kernel has little room for
this."""
_LEAST = 1 / 64
_BORNE, _LEAST_BORNE = 3 / 4, 1 / 16
"""After a second with drops, the new limit is 3/4 of what was handled; it never falls below 1/16 of ``most``."""
_LOOK_S = 1.0
_EASIER = 1.05
"""The factor by which the limit grows after a second without drops. It is small, because under a limit that is too
high everything comes late."""


class FloodLimit:
    """A limit on the messages of a subscription that bear no mark of a known sender: in a flood it takes a share of
    them only, so that about as many come as wanted, or fewer where the subscription drops some. If nobody is known,
    or more are known than there is room for marks, it takes everything. Use from the bus's loop only."""

    def __init__(self, most: float, marks: Callable[[], Iterable[Mark]]) -> None:
        """``most`` is the wanted number per second; ``marks`` returns the marks of all known senders."""
        self._most = self._bearable = most
        self._marks = marks
        self._subscription: Subscription | None = None
        self._share = 1.0
        self._count = self._dropped = 0
        self._since = float("-inf")

    def watch(self, subscription: Subscription) -> None:
        """Begin with a subscription, which takes everything at first."""
        self._subscription = subscription
        self._share, self._count, self._since = 1.0, 0, clock.monotonic()
        self._bearable, self._dropped = self._most, subscription.statistics().dropped

    def came(self, *, limited: bool) -> None:
        """Note that a message came, and whether it counts against the limit; each one also ends a flood that is
        over."""
        self._count += limited
        passed = clock.monotonic() - self._since
        if passed >= _LOOK_S and self._subscription is not None:
            before, self._dropped = self._dropped, self._subscription.statistics().dropped
            dropped = self._dropped - before
            bearable = self._bearable * _EASIER if dropped == 0 else self._count / passed * _BORNE
            self._bearable = min(max(bearable, self._most * _LEAST_BORNE), self._most)
            self._adjust(self._subscription, (self._count + dropped) / passed / self._share)
            self._count, self._since = 0, clock.monotonic()

    def _adjust(self, subscription: Subscription, rate: float) -> None:
        """Take a share of all messages without a mark, for limited ones that come at this rate; or everything, if
        there are no marks or too many."""
        marks = () if rate <= self._bearable else tuple(itertools.islice(self._marks(), MAX_MARKS + 1))
        if not 0 < len(marks) <= MAX_MARKS:
            self._share = 1.0
            subscription.take_only(None)
        else:
            self._share = max(_LEAST, 0.5 ** math.ceil(math.log2(rate / self._bearable)))
            subscription.take_only(Ration(self._share, marks))
