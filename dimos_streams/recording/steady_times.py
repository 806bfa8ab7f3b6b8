"""Possible times for events: a damaged or wildly set stamp of a log must not make a replay wait for years."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

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

_MOST_METADATA = 32
"""Maximum number of events with metadata that keep their place behind one whose time waits for what follows."""

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class SetBack:
    """A place in a log at which the clock goes back."""

    event: int
    """The number of the first event behind it."""
    us: int
    utime: int
    """The time from which times go on, µs."""

    def __str__(self) -> str:
        return f"the clock goes back by {self.us / 1e6:.1f} s at event {self.event}"


@dataclass(slots=True)
class Steadiness:
    """The state of the times of the events before the next one."""

    first: int | None = None
    """The time from which seconds are counted, µs: that of the first of them, or of the second where the stamp of the
    first is impossible."""
    last: int | None = None
    """The latest of them, µs."""
    ahead: int = 0
    """The time in µs that is taken from the stamps: the pauses that were taken out so far, less what the clock went
    back."""
    set_backs: list[SetBack] = field(default_factory=list)
    """The places so far at which the clock goes back, bounded."""
    impossible: list[str] = field(default_factory=list)
    """The events so far whose stamps are impossible, in words, bounded."""

    def note_set_back(self, set_back: SetBack) -> None:
        """Note that the clock went back; times go on from the one before."""
        if len(self.set_backs) < _MAX_SET_BACKS:
            self.set_backs.append(set_back)
        self.ahead -= set_back.us

    def note_impossible(self, why: str) -> None:
        """Note that the stamp of an event is impossible."""
        if len(self.impossible) < _MAX_SET_BACKS:
            self.impossible.append(why)


def going_on(events: Iterable[LogEvent], known: Steadiness) -> Iterator[tuple[int, LogEvent]]:
    """Yield the same events, each with its time by a clock that goes on where the log's was set back, as ``steady``
    has it, but with all pauses and impossible stamps. ``known`` is brought up to each event before that is given."""
    return _timed(events, known, mends=False, warns=False)


def steady(events: Iterable[LogEvent], known: Steadiness | None = None, *, warns: bool = True) -> Iterator[LogEvent]:
    """Yield the same events. One that is far ahead of both its neighbours gets the time of the one before it, a first
    one that is more than ``LONGEST_PAUSE_S`` ahead of the second gets the time of that, and
    where all that follows is more than ``LONGEST_PAUSE_S`` later, that pause is taken out. Where the clock was set
    back it goes on from the time before; what only came late keeps its time.

    ``known`` is the state from which it goes on; it is brought up to each event before that is given. Whoever reads a
    log several times lets one of them warn.
    """
    for utime, event in _timed(events, known or Steadiness(), mends=True, warns=warns):
        yield event if utime == event.utime else event._replace(utime=utime)


class _Judged(NamedTuple):
    """The time of an event that does not just follow the one before it."""

    utime: int
    """The time that the event gets, µs."""
    last: int
    """The time by which the next event is judged, µs."""
    why: str
    """What is wrong with its stamp, in words; empty if nothing is."""


def _timed(
    events: Iterable[LogEvent], known: Steadiness, *, mends: bool, warns: bool
) -> Iterator[tuple[int, LogEvent]]:
    for event, following, later in _with_following(events):
        if event.channel == CHANNEL:  # the time of metadata says nothing about what was recorded
            yield event.utime, event
            continue
        utime, last = event.utime - known.ahead, known.last
        after = utime if following is None else following.utime - known.ahead
        if last is not None and last <= utime <= after and utime - last <= _LONGEST_US:
            known.last = utime
            yield utime, event
            continue
        judged = _judged(event, following, later, known, mends=mends)
        if warns and judged.why:
            _log.warning("%s", judged.why)
        known.last = judged.last
        if known.first is None:
            known.first = judged.last
        yield judged.utime, event


def _judged(
    event: LogEvent, following: LogEvent | None, later: LogEvent | None, known: Steadiness, *, mends: bool
) -> _Judged:
    """Judge an event by those around it: its stamp is impossible, a pause is before it, the clock was set back before
    it, or it only comes late. ``known`` is brought up to it, except for ``last``."""
    utime = event.utime - known.ahead
    before = utime if known.last is None else known.last
    after = utime if following is None else following.utime - known.ahead
    if known.last is None and following is not None and _is_far_ahead(event, following, later):
        why = f"event {event.number}, the first, is {(utime - after) / 1e6:.0f} s ahead of the second"
        known.note_impossible(why)
        return _Judged(after if mends else utime, after, why)
    if before - SET_BACK_US <= after < utime - _BACK_US and utime > before:
        why = f"event {event.number} is {(utime - before) / 1e6:.1f} s ahead of its neighbours"
        known.note_impossible(why)
        return _Judged(before if mends else utime, before, why)
    if mends and utime - before > _LONGEST_US:
        known.ahead += utime - before
        return _Judged(
            before, before, f"a pause of {(utime - before) / 1e6:.0f} s before event {event.number} is cut out"
        )
    if _is_set_back(before, utime, following, later, known.ahead):
        known.note_set_back(set_back := SetBack(event.number, before - utime, before))
        return _Judged(before, before, f"{set_back}; its times go on from there")
    return _Judged(utime, max(before, utime), "")


def _is_set_back(before: int, utime: int, following: LogEvent | None, later: LogEvent | None, ahead: int) -> bool:
    """Return whether the clock was set back before an event: the next one is earlier, too, and the one after that
    has not returned to where the clock would have been."""
    if following is None or before - utime <= SET_BACK_US or before - (following.utime - ahead) <= SET_BACK_US:
        return False
    return later is None or later.utime - ahead - before < SET_BACK_US


def _is_far_ahead(first: LogEvent, second: LogEvent, third: LogEvent | None) -> bool:
    """Return whether the first event's stamp is impossible, and not the second one's: the third is nearer to that."""
    if first.utime - second.utime <= _LONGEST_US:
        return False
    return third is None or abs(third.utime - second.utime) < abs(third.utime - first.utime)


def _with_following(
    events: Iterable[LogEvent],
) -> Iterator[tuple[LogEvent, LogEvent | None, LogEvent | None]]:
    """Yield each event with the two behind it that are no metadata."""
    first: LogEvent | None = None
    second: LogEvent | None = None
    behind_first, behind_second = list[LogEvent](), list[LogEvent]()
    for event in events:
        if event.channel == CHANNEL:
            behind = behind_first if second is None else behind_second
            if first is None or len(behind) == _MOST_METADATA:
                yield event, None, None
            else:
                behind.append(event)
        elif first is None:
            first = event
        elif second is None:
            second = event
        else:
            yield first, second, event
            if behind_first or behind_second:
                yield from _alone(behind_first)
                behind_first, behind_second = behind_second, []
            first, second = second, event
    if first is not None:
        yield first, second, None
    yield from _alone(behind_first)
    if second is not None:
        yield second, None, None
    yield from _alone(behind_second)


def _alone(events: Iterable[LogEvent]) -> Iterator[tuple[LogEvent, None, None]]:
    return ((event, None, None) for event in events)
