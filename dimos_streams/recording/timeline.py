"""Times of events as they can be: a damaged or wildly set stamp of a log must not make a replay wait for years."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.metadata import CHANNEL

LONGEST_PAUSE_S = 3600.0
"""A longer pause between two events is cut out."""
_LONGEST_US = int(LONGEST_PAUSE_S * 1e6)
_BACK_US = 1_000_000
"""An event whose successor is so much earlier, and not earlier than its predecessor, has a stamp that can't be."""

_log = LimitedLog(logging.getLogger(__name__))


def steady(events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    """The same events. One that is far ahead of both its neighbours gets the time of the one before it, and where all
    that follows is more than ``LONGEST_PAUSE_S`` later, that pause is taken out. Times that go back stay as they are.
    """
    last: int | None = None
    cut_out = 0
    for event, following in _with_next(events):
        if event.channel == CHANNEL:  # the time of metadata says nothing about what was recorded
            yield event
            continue
        utime = event.utime - cut_out
        after = utime if following is None else following.utime - cut_out
        before = utime if last is None else last
        if before - _BACK_US <= after < utime - _BACK_US and utime > before:
            _log.warning("event %d is %.1f s ahead of its neighbours", event.number, (utime - before) / 1e6)
            utime = before
        elif utime - before > _LONGEST_US:
            _log.warning("a pause of %.0f s before event %d is cut out", (utime - before) / 1e6, event.number)
            cut_out += utime - before
            utime = before
        last = utime if last is None else max(last, utime)
        yield event if utime == event.utime else event._replace(utime=utime)


def _with_next(events: Iterable[LogEvent]) -> Iterator[tuple[LogEvent, LogEvent | None]]:
    previous: LogEvent | None = None
    for event in events:
        if previous is not None:
            yield previous, event
        previous = event
    if previous is not None:
        yield previous, None
