"""Selections of channels by patterns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

from dimos_streams.messages.codec import split_channel

_REMEMBERED = 10_000


class Selection:
    """Channels by patterns with ``*`` and ``?``: of topics (``/robot1/*``) or, with ``#``, of whole channels
    (``*#sensor_msgs.Image``). Without an ``include`` all are meant.

    It remembers what it was asked about, so each reader of a log has one of its own.
    """

    def __init__(self, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self.include = tuple(include)
        self.exclude = tuple(exclude)
        self._included = [_compiled(pattern) for pattern in self.include]
        self._excluded = [_compiled(pattern) for pattern in self.exclude]
        self._known: dict[str, bool] = {}

    def __call__(self, channel: str) -> bool:
        """Return whether a channel is selected."""
        known = self._known.get(channel)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[channel] = self._decide(channel)
        return known

    @property
    def asked(self) -> tuple[str, ...]:
        """The channels that it was asked about so far."""
        return tuple(self._known)

    def unused(self) -> list[str]:
        """The patterns of ``include`` that fit none of the channels asked about."""
        return [
            text
            for text, pattern in zip(self.include, self._included, strict=True)
            if not any(_fits(pattern, channel) for channel in self._known)
        ]

    def _decide(self, channel: str) -> bool:
        wanted = not self._included or any(_fits(pattern, channel) for pattern in self._included)
        return wanted and not any(_fits(pattern, channel) for pattern in self._excluded)


_Pattern = tuple[bool, re.Pattern[str]]


def _compiled(pattern: str) -> _Pattern:
    return "#" in pattern, re.compile(fnmatch.translate(pattern))


def _fits(pattern: _Pattern, channel: str) -> bool:
    whole, expression = pattern
    return expression.match(channel if whole else split_channel(channel)[0]) is not None
