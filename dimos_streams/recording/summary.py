"""Summarises a log: channels, types, rates, span, gaps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.common.rate import rate_hz
from dimos_streams.errors import MessageError
from dimos_streams.messages import registry
from dimos_streams.messages.codec import split_channel, type_named
from dimos_streams.recording.metadata import CHANNEL, Metadata
from dimos_streams.recording.reader import LogReader, OnProgress, events_of_logs
from dimos_streams.recording.steady_times import SetBack, Steadiness, going_on

GAP_S = 1.0
"""A channel that is silent for longer, and for longer than usual, has a gap."""
MAX_CHANNELS = 10_000
"""Maximum number of channels that are told apart; the events of those that come later in the log are only counted."""
_UNUSUAL = 5.0
_MAX_RUNS = 16
_MAX_GAPS = 100


@dataclass(slots=True)
class ChannelSummary:
    """The events of one channel. Times are µs."""

    channel: str
    count: int = 0
    size: int = 0
    """The size of its messages, in bytes."""
    first: int = 0
    last: int = 0
    longest: int = 0
    """The longest time between two events."""
    longest_at: int = 0
    """The beginning of that time."""
    backwards: int = 0
    """The number of events that are older than the one before."""
    fingerprint: bytes = b""

    def add(self, utime: int, size: int) -> None:
        """Count an event."""
        self.count += 1
        self.size += size
        interval = utime - self.last
        if interval >= 0:
            if interval > self.longest:
                self.longest, self.longest_at = interval, self.last
            self.last = utime
        else:
            self.backwards += 1
            self.first = min(self.first, utime)

    @property
    def topic(self) -> str:
        """The channel without its type."""
        return split_channel(self.channel)[0]

    @property
    def type_name(self) -> str:
        """The type by the channel's name, or by the fingerprint of its first message; empty if neither is known."""
        return split_channel(self.channel)[1] or _type_of(self.fingerprint)

    @property
    def rate_hz(self) -> float | None:
        """Messages a second between the first and the last, or None if that tells nothing."""
        return rate_hz(self.count, (self.last - self.first) / 1e6)

    @property
    def gap_s(self) -> float | None:
        """The longest silence in seconds, or None if it is no gap."""
        usual = (self.last - self.first - self.longest) / max(1, self.count - 2)
        return self.longest / 1e6 if self.longest > max(GAP_S * 1e6, _UNUSUAL * usual) else None

    def to_dict(self, start: int) -> dict[str, Any]:
        """Return plain data for JSON; times are seconds from ``start``."""
        gap = {"seconds": self.gap_s, "at_s": (self.longest_at - start) / 1e6} if self.gap_s is not None else None
        return {
            "channel": self.channel,
            "type": self.type_name,
            "known": registry.find(self.type_name) is not None,
            "messages": self.count,
            "bytes": self.size,
            "rate_hz": None if self.rate_hz is None else round(self.rate_hz, 3),
            "first_s": (self.first - start) / 1e6,
            "last_s": (self.last - start) / 1e6,
            "longest_gap": gap,
            "backwards": self.backwards,
        }


@dataclass(slots=True)
class OlderEvents:
    """The events that are older than one before them on their channel, where no clock was set back for good."""

    count: int = 0
    most: int = 0
    """The time by which one is older at most, µs."""
    first: int = 0
    """The number of the first such event."""

    def add(self, event: int, us: int) -> None:
        """Count an event."""
        self.first = self.first if self.count else event
        self.count += 1
        self.most = max(self.most, us)

    def __str__(self) -> str:
        events = "one event" if self.count == 1 else f"{self.count} events"
        return f"the clock goes back for {events}, by {self.most / 1e6:.15g} s at most, first at event {self.first}"


@dataclass(slots=True)
class LogSummary:
    """The summary of a whole log."""

    channels: dict[str, ChannelSummary] = field(default_factory=dict)
    beyond: ChannelSummary | None = None
    """The events of all channels beyond ``MAX_CHANNELS`` together; None if there are none."""
    events: int = 0
    first: int = 0
    """The time from which all commands count seconds, µs since the Unix epoch, see ``Steadiness.first``; an event may
    have an earlier one. Where the clock was set back, this and all other times go on from those before."""
    last: int = 0
    set_backs: list[SetBack] = field(default_factory=list)
    """The places at which the clock goes back, bounded."""
    impossible: list[str] = field(default_factory=list)
    """The events whose stamps are far ahead of their neighbours', in words, bounded."""
    older: OlderEvents = field(default_factory=OlderEvents)
    metadata: Metadata | None = None
    """The first metadata in the log that can be read, or None for logs of other programs."""
    other_runs: list[str] = field(default_factory=list)
    """The titles of further runs of which the log has metadata, bounded."""
    metadata_fault: str = ""
    """The reason why the first metadata can't be read; empty if they can, or if there are none."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """The times in which nothing at all was recorded for over a second: beginning and length, µs; bounded."""

    @property
    def span_s(self) -> float:
        """Seconds from that time to the latest event."""
        return (self.last - self.first) / 1e6

    def describe(self, data: bytes) -> None:
        """Take what a log says of itself, unless that is known."""
        try:
            metadata = Metadata.decoded(data)
        except MessageError as error:
            if self.metadata is None:
                self.metadata_fault = self.metadata_fault or error.why
            return
        if self.metadata is None:
            self.metadata = metadata
        elif metadata.title not in (self.metadata.title, *self.other_runs) and len(self.other_runs) < _MAX_RUNS:
            self.other_runs.append(metadata.title)

    def channel_of(self, name: str, utime: int, data: bytes) -> ChannelSummary:
        """Return where the events of a channel are counted that is not among ``channels``, of which this is one."""
        if len(self.channels) >= MAX_CHANNELS:
            self.beyond = self.beyond or ChannelSummary("", first=utime, last=utime)
            return self.beyond
        channel = self.channels[name] = ChannelSummary(name, first=utime, last=utime, fingerprint=data[:8])
        return channel


def summarize(logs: Iterable[LogReader], on_progress: OnProgress | None = None) -> LogSummary:
    """Read logs, which are open, as one. ``on_progress`` is called now and then with the log that is being read."""
    summary = LogSummary()
    channels, newest, gap_us = summary.channels, 0, round(GAP_S * 1e6)
    known = Steadiness(set_backs=summary.set_backs, impossible=summary.impossible)
    for utime, event in going_on(events_of_logs(logs, on_progress), known):
        name, data = event.channel, event.data
        channel = channels.get(name)
        if channel is None:
            if name == CHANNEL:
                summary.describe(data)
                continue
            if not channels:
                summary.first, newest = known.first or 0, utime
            channel = summary.channel_of(name, utime, data)
        if utime > newest:
            if utime - newest > gap_us and len(summary.gaps) < _MAX_GAPS:
                summary.gaps.append((newest, utime - newest))
            newest = utime
        if utime < channel.last:
            summary.older.add(event.number, channel.last - utime)
        channel.add(utime, len(data))
    counted = [*channels.values(), *filter(None, [summary.beyond])]
    summary.events = sum(channel.count for channel in counted)
    summary.last = newest
    return summary


def first_metadata(log: LogReader) -> Metadata | None:
    """The first metadata in a log that can be read, or None if it has none."""
    readable = (Metadata.readable(event.data) for event in log.events() if event.channel == CHANNEL)
    return next((metadata for metadata in readable if metadata is not None), None)


def _type_of(fingerprint: bytes) -> str:
    for name in registry.type_names():
        if type_named(name)._get_packed_fingerprint() == fingerprint:
            return name
    return ""
