"""Fewer messages of strangers, where so many come that those of whom something is known would drown among them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

from dimos_streams import clock
from dimos_streams.bus import Subscription
from dimos_streams.bus.base import Mark, Ration

MAX_MARKS = 24
MARK_BYTES = 12
"""Of what is known of a message, the end is compared: the kernel has little room for such comparisons."""
_LEAST = 1 / 64
_LEAST_BORNE = 1 / 16
_LOOK_S = 1.0
_EASIER = 1.25
"""By so much more than at the last look is borne where nothing was thrown away since."""


class Strangers:
    """Counts the messages of strangers on a subscription, and has it take a share of them only that is about as large
    as wanted, or as its handler bears: half of what was handled, where the subscription has thrown some away. Where
    nobody is known, or more are than there is room for marks, it takes everything. Use from the bus's loop only."""

    def __init__(self, most: float, marks: Callable[[], Iterable[Mark]]) -> None:
        """``most`` of them are taken in a second; ``marks`` are those of all messages that are no stranger's."""
        self._most = self._bearable = most
        self._marks = marks
        self._subscription: Subscription | None = None
        self._share = 1.0
        self._count = self._dropped = 0
        self._since = float("-inf")

    def watch(self, subscription: Subscription) -> None:
        """Begin with a subscription, which takes everything."""
        self._subscription = subscription
        self._share, self._count, self._since = 1.0, 0, clock.monotonic()
        self._bearable, self._dropped = self._most, subscription.statistics().dropped

    def came(self, *, stranger: bool) -> None:
        """Take note of a message; each one also ends a flood that is over."""
        self._count += stranger
        passed = clock.monotonic() - self._since
        if passed >= _LOOK_S and self._subscription is not None:
            self._bear(self._subscription.statistics().dropped, self._count / passed)
            self._settle(self._subscription, self._count / passed / self._share)
            self._count, self._since = 0, clock.monotonic()

    def _bear(self, dropped: int, rate: float) -> None:
        """Bear half of the strangers' messages that were handled in a second, if there was no room for others."""
        is_too_much, self._dropped = dropped > self._dropped, dropped
        bearable = rate / 2 if is_too_much else self._bearable * _EASIER
        self._bearable = min(max(bearable, self._most * _LEAST_BORNE), self._most)

    def _settle(self, subscription: Subscription, rate: float) -> None:
        """Take a share of strangers' messages that come at this rate: of all that bears no mark, so that nothing is
        left out where the marks are not those of everybody who is known."""
        marks = () if rate <= self._bearable else tuple(itertools.islice(self._marks(), MAX_MARKS + 1))
        if not 0 < len(marks) <= MAX_MARKS:
            self._share = 1.0
            subscription.take_only(None)
        else:
            self._share = max(_LEAST, 0.5 ** math.ceil(math.log2(rate / self._bearable)))
            subscription.take_only(Ration(self._share, marks))
