"""Logs as one tape, which can be read from any place that was noted before."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.metadata import CHANNEL
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.steady_times import SetBack, Steadiness, steady

_SHOWN = 3


class Place(NamedTuple):
    """A place between two events of a tape."""

    offset: int = 0
    """The position at which the next event begins, in bytes from the beginning of the first log."""
    last: int | None = None
    ahead: int = 0
    """See ``Steadiness``."""


class Tape:
    """Logs, which are open, one behind the other. ``offset`` of an event counts from the beginning of the first."""

    def __init__(self, logs: Sequence[LogReader]) -> None:
        self._logs = logs
        self.set_backs: list[SetBack] = []
        """The places at which the clock goes back, as far as the newest reading from the beginning has come."""
        self._begins = list(itertools.accumulate((log.size for log in logs), initial=0))

    @property
    def size(self) -> int:
        """The size of all logs together, in bytes."""
        return self._begins[-1]

    def events(self, place: Place | None = None) -> Iterator[tuple[LogEvent, Place]]:
        """Yield the events from a place on, without metadata, at possible times; each with the place before it."""
        is_whole, place = place is None, place or Place()
        known = Steadiness(last=place.last, ahead=place.ahead)
        if is_whole:
            self.set_backs = known.set_backs
        last, ahead = known.last, known.ahead
        for event in steady(self._raw(place.offset), known, warns=is_whole):
            if event.channel != CHANNEL:
                yield event, Place(event.offset, last, ahead)
            last, ahead = known.last, known.ahead

    def event_at(self, offset: int) -> LogEvent | None:
        """The event that begins there, with its own time, or None if none does."""
        return next(self._raw(offset), None)

    def damages(self) -> list[str]:
        """The logs that are damaged, and where, in words. Each time that a log is read anew it knows of no damage
        yet: ask when the whole tape was read just now."""
        return [
            f"{log.path.name} is damaged, {log.damaged_bytes} bytes were left out: "
            + "; ".join(map(str, log.damages[:_SHOWN]))
            for log in self._logs
            if log.damaged_bytes
        ]

    def _raw(self, offset: int) -> Iterator[LogEvent]:
        first = min(bisect.bisect_right(self._begins, offset) - 1, len(self._logs) - 1)
        for begin, log in zip(self._begins[first:], self._logs[first:], strict=False):
            for event in log.events(max(0, offset - begin)):
                yield event._replace(offset=begin + event.offset) if begin else event
