"""Compares what modules gave in a recording with what they give now: messages by channel, tool events by call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode, split_channel, type_named
from dimos_streams.regression.differences import (
    FieldDifference,
    message_differences,
    numbers_of,
    shown_value,
    value_differences,
)
from dimos_streams.regression.matching import Matcher, Output, StreamResult
from dimos_streams.regression.tolerances import Tolerances
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.protocol.close_data import OF_AUTHORS
from dimos_streams.tool_stream.wire.unpacking import unpack_event

_SHOWN = 160
PROGRESS = " progress"
"""The end of the name of a stream with a call's progress."""

Points = list[tuple[int, float]]


@dataclass(slots=True)
class Series:
    """Numbers of one field over time, for pictures."""

    recorded: Points = field(default_factory=list)
    replayed: Points = field(default_factory=list)


@dataclass(slots=True)
class _Closes:
    """The last events of a call on both sides, as far as it ended."""

    recorded: ToolEvent | None = None
    replayed: ToolEvent | None = None
    is_behind: bool = False
    """True if the replayed call ended after the time of the log's last event."""


class Comparison:
    """Both sides must be fed in the order of their times, the recorded one never later than the replayed one."""

    def __init__(
        self,
        tolerances: Tolerances,
        *,
        with_series: bool = False,
        on_left: Callable[[str, Output[bytes]], None] = lambda channel, output: None,
    ) -> None:
        """``with_series`` keeps all numbers in memory. ``on_left`` is called with recorded messages that must
        have come from other modules, or from calls that began before the log, since nothing replayed agrees with
        them."""
        self.series: dict[tuple[str, str], Series] = {}
        self._allow = tolerances
        self._window_us = round(tolerances.time_s * 1e6)
        self._with_series = with_series
        self._on_left = on_left
        self._channels: dict[str, Matcher[bytes]] = {}
        self._calls: dict[str, Matcher[ToolEvent]] = {}
        self._closes: dict[str, _Closes] = {}
        """How calls ended, by the names of their streams."""
        self._recorded_order, self._replayed_order = _Order(), _Order()

    def recorded(self, channel: str, data: bytes, utime: int, *, optional: bool, is_earlier: bool = False) -> None:
        """An output of the log; ``optional`` if another module may have given it, ``is_earlier`` if a call that began
        before the log may have."""
        if channel == EVENTS:
            for when, event in self._recorded_order.reorder(data, utime):
                self._take_recorded(event, when)
            return
        self._of_channel(channel).recorded(Output(utime, data, optional or is_earlier, is_earlier))
        if self._with_series:
            self._note_numbers(channel, data, utime, replayed=False)

    def replayed(self, channel: str, data: bytes, utime: int, *, optional: bool) -> None:
        """An output of the replay; ``optional`` if it came before the time of the log's first event or after that of
        its last one, or while a call that began before the log would have sent others."""
        if channel == EVENTS:
            for when, event in self._replayed_order.reorder(data, utime):
                self._take_replayed(event, when, optional=optional)
            return
        self._of_channel(channel).replayed(Output(utime, data, optional))
        if self._with_series:
            self._note_numbers(channel, data, utime, replayed=True)

    def settle(self, now: int) -> None:
        """Match what can be matched, as the replay's time has come to ``now``."""
        for messages in self._channels.values():
            messages.settle(now)
        for events in self._calls.values():
            events.settle(now)

    def finish(self) -> list[StreamResult]:
        """The results: channels by name, then calls in their order."""
        for when, event in self._recorded_order.rest():
            self._take_recorded(event, when)
        for when, event in self._replayed_order.rest():
            self._take_replayed(event, when, optional=False)
        for name, closes in self._closes.items():
            self._calls[name].result.close = self._ends_otherwise(closes)
        channels = [self._channels[channel].finish() for channel in sorted(self._channels)]
        return channels + [matcher.finish() for matcher in self._calls.values()]

    def _take_recorded(self, event: ToolEvent, utime: int) -> None:
        if event.type == "close":
            self._closes.setdefault(_stream_of(event), _Closes()).recorded = event
        self._of_call(event).recorded(Output(utime, event))

    def _take_replayed(self, event: ToolEvent, utime: int, *, optional: bool) -> None:
        if event.type == "close":
            closes = self._closes.setdefault(_stream_of(event), _Closes())
            closes.replayed, closes.is_behind = event, optional
        self._of_call(event).replayed(Output(utime, event, optional))

    def _ends_otherwise(self, closes: _Closes) -> str:
        """Return how a call ended on each side; empty if both ends agree."""
        first, second = closes.recorded, closes.replayed
        if first is None and closes.is_behind:
            return ""
        if first is not None and second is not None and not self._event_differences(first, second):
            return ""
        return f"recorded {_described_close(first)}, replayed {_described_close(second)}"

    def _of_channel(self, channel: str) -> Matcher[bytes]:
        matcher = self._channels.get(channel)
        if matcher is None:
            matcher = self._channels[channel] = Matcher(
                channel,
                partial(message_differences, channel, allow=self._allow),
                partial(_described, channel),
                window_us=self._window_us,
                in_order=False,
                on_left=partial(self._on_left, channel),
            )
        return matcher

    def _of_call(self, event: ToolEvent) -> Matcher[ToolEvent]:
        """A call's progress comes as often as it likes; all its other events one after another."""
        name = _stream_of(event)
        matcher = self._calls.get(name)
        if matcher is None:
            is_progress = event.type == "progress"
            matcher = self._calls[name] = Matcher(
                name, self._event_differences, _described_event, window_us=self._window_us, in_order=not is_progress
            )
        return matcher

    def _event_differences(self, recorded: ToolEvent, replayed: ToolEvent) -> list[FieldDifference]:
        allow = self._allow
        first, second = _compared(recorded), _compared(replayed)
        if allow.time_s and recorded.outcome is replayed.outcome is Outcome.CANCELLED:
            del first["text"]  # of several who cancel a call it names the one that is heard first
        found: list[FieldDifference] = []
        for name, value in first.items():
            found += value_differences(EVENTS, name, value, second[name], allow)
        return found

    def _note_numbers(self, channel: str, data: bytes, utime: int, *, replayed: bool) -> None:
        try:
            message = decode(type_named(split_channel(channel)[1], channel), data, channel)
        except MessageError:  # compared as bytes; there is nothing to draw
            return
        for path, value in numbers_of(message):
            series = self.series.setdefault((channel, path), Series())
            (series.replayed if replayed else series.recorded).append((utime, value))


class _Order:
    """Puts each call's events in order, once each, as far as they have come."""

    def __init__(self) -> None:
        self._delivered: dict[str, int] = {}
        self._ahead: dict[str, dict[int, tuple[int, ToolEvent]]] = {}

    def reorder(self, data: bytes, utime: int) -> list[tuple[int, ToolEvent]]:
        """The events that can be reported now that this one has come."""
        try:
            event = unpack_event(data)
        except MessageError:  # whoever reads tool streams skips and counts it
            return []
        call, delivered = event.call_id, self._delivered.get(event.call_id, 0)
        if event.seq <= delivered:
            return []
        ahead = self._ahead.setdefault(call, {})
        ahead.setdefault(event.seq, (utime, event))
        ready = []
        while delivered + 1 in ahead:
            delivered += 1
            ready.append(ahead.pop(delivered))
        self._delivered[call] = delivered
        return ready

    def rest(self) -> list[tuple[int, ToolEvent]]:
        """The events that came behind one that never did."""
        return [ahead[seq] for ahead in self._ahead.values() for seq in sorted(ahead)]


def _compared(event: ToolEvent) -> dict[str, Any]:
    """Return what an event is compared by. What is wrong with the code of a skill follows from the result, or names
    lines of that code."""
    data = {name: value for name, value in event.data.items() if name not in OF_AUTHORS}
    return {"type": event.type, "text": event.text, "data": data}


def _described(channel: str, data: bytes) -> str:
    try:
        return shown_value(decode(type_named(split_channel(channel)[1], channel), data, channel), _SHOWN)
    except MessageError:
        return shown_value(data)


def _stream_of(event: ToolEvent) -> str:
    return f"{event.skill} [{event.call_id}]" + (PROGRESS if event.type == "progress" else "")


def _described_close(event: ToolEvent | None) -> str:
    return "nothing" if event is None else f"{event.outcome} {shown_value(event.text, _SHOWN)}"


def _described_event(event: ToolEvent) -> str:
    return f"{event.type} {shown_value(event.text, _SHOWN)}"
