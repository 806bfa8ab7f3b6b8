"""Possible times for events: a damaged or wildly set stamp of a log must not make a replay wait for years."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.metadata import CHANNEL

LONGEST_PAUSE_S = 3600.0
"""The longest pause between two events that is kept; a longer one is cut out."""
_LONGEST_US = int(LONGEST_PAUSE_S * 1e6)
_BACK_US = 1_000_000
"""The time in µs: an event whose successor is so much earlier, and not earlier than its predecessor, has an
impossible stamp."""

SET_BACK_US = 100_000
"""The time in µs by which an event and the next are earlier than one before them if the clock was set back; messages
that overtake each other are less apart."""
_MAX_SET_BACKS = 100

_WINDOW = 3

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class SetBack:
    """A place in a log at which the clock goes back."""

    event: int
    """The number of the first event behind it."""
    us: int

    def __str__(self) -> str:
        return f"the clock goes back by {self.us / 1e6:.1f} s at event {self.event}"


@dataclass(slots=True)
class Steadiness:
    """The state of the times of the events before the next one."""

    last: int | None = None
    """The latest of them, µs."""
    ahead: int = 0
    """The time in µs that is taken from the stamps: the pauses that were taken out so far, less what the clock went
    back."""
    set_backs: list[SetBack] = field(default_factory=list)
    """The places so far at which the clock goes back, bounded."""


def going_on(events: Iterable[LogEvent], found: list[SetBack]) -> Iterator[tuple[int, LogEvent]]:
    """Yield the same events, each with its time by a clock that goes on where the log's was set back. ``found`` gets
    those places, bounded."""
    before = newest = -(1 << 63)
    back, held = 0, None
    for event in events:
        if event.channel == CHANNEL:
            yield event.utime + back, event
            continue
        utime = event.utime + back
        if held is not None:
            late = held.utime + back
            if newest - utime > _BACK_US and before - _BACK_US <= late:  # the newest stamp is impossible
                newest = late
            elif newest - utime > SET_BACK_US:
                _note(found, SetBack(held.number, newest - late))
                back, utime, late = back + newest - late, utime + newest - late, newest
            yield late, held
            held = None
        elif newest - utime > SET_BACK_US:
            held = event
            continue
        if utime > newest:
            before, newest = newest, utime
        yield utime, event
    if held is not None:
        yield held.utime + back, held


def steady(events: Iterable[LogEvent], known: Steadiness | None = None) -> Iterator[LogEvent]:
    """Yield the same events. One that is far ahead of both its neighbours gets the time of the one before it, a first
    one that is more than ``LONGEST_PAUSE_S`` ahead of the second gets the time of that, and
    where all that follows is more than ``LONGEST_PAUSE_S`` later, that pause is taken out. Where the clock was set
    back it goes on from the time before; what only came late keeps its time.

    ``known`` is the state from which it goes on; it is brought up to each event before that is given.
    """
    known = known or Steadiness()
    for event, following, later in _with_following(events):
        if event.channel == CHANNEL:  # the time of metadata says nothing about what was recorded
            yield event
            continue
        utime = event.utime - known.ahead
        after = utime if following is None else following.utime - known.ahead
        before = utime if known.last is None else known.last
        if known.last is None and following is not None and _is_far_ahead(event, following, later):
            _log.warning("event %d, the first, is %.0f s ahead of the second", event.number, (utime - after) / 1e6)
            utime = after
        elif before - _BACK_US <= after < utime - _BACK_US and utime > before:
            _log.warning("event %d is %.1f s ahead of its neighbours", event.number, (utime - before) / 1e6)
            utime = before
        elif utime - before > _LONGEST_US:
            _log.warning("a pause of %.0f s before event %d is cut out", (utime - before) / 1e6, event.number)
            known.ahead += utime - before
            utime = before
        elif before - utime > SET_BACK_US and following is not None and before - after > SET_BACK_US:
            set_back = SetBack(event.number, before - utime)
            _log.warning("%s; its times go on from there", set_back)
            _note(known.set_backs, set_back)
            known.ahead -= set_back.us
            utime = before
        known.last = utime if known.last is None else max(known.last, utime)
        yield event if utime == event.utime else event._replace(utime=utime)


def _note(found: list[SetBack], set_back: SetBack) -> None:
    if len(found) < _MAX_SET_BACKS:
        found.append(set_back)


def _is_far_ahead(first: LogEvent, second: LogEvent, third: LogEvent | None) -> bool:
    """Return whether the first event's stamp is impossible, and not the second one's: the third is nearer to that."""
    if first.utime - second.utime <= _LONGEST_US:
        return False
    return third is None or abs(third.utime - second.utime) < abs(third.utime - first.utime)


def _with_following(
    events: Iterable[LogEvent],
) -> Iterator[tuple[LogEvent, LogEvent | None, LogEvent | None]]:
    """Yield each event with the two that follow it."""
    window: deque[LogEvent] = deque()
    for event in events:
        window.append(event)
        if len(window) == _WINDOW:
            yield window[0], window[1], window[2]
            window.popleft()
    while window:
        yield window[0], window[1] if len(window) > 1 else None, None
        window.popleft()
