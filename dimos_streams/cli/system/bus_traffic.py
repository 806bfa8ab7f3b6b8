"""Counts of what comes over a bus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dimos_streams import clock
from dimos_streams.common.rate import rate_hz
from dimos_streams.common.readable.byte_size import byte_size
from dimos_streams.messages.codec import split_channel


@dataclass(slots=True)
class Traffic:
    """The messages of one channel. Times are of ``clock.monotonic``."""

    channel: str
    count: int = 0
    bytes: int = 0
    first: float = 0.0
    last: float = 0.0
    shortest_s: float = float("inf")
    longest_s: float = 0.0

    @property
    def topic(self) -> str:
        """The channel without its type."""
        return split_channel(self.channel)[0]

    def add(self, size: int, now: float) -> None:
        """Count one message."""
        if self.count:
            self.shortest_s = min(self.shortest_s, now - self.last)
            self.longest_s = max(self.longest_s, now - self.last)
        else:
            self.first = now
        self.last = now
        self.count += 1
        self.bytes += size

    def rate_hz(self, seconds: float) -> float:
        """Return messages per second: between the first and the last, or over all the time listened if that tells
        nothing."""
        between = rate_hz(self.count, self.last - self.first)
        return self.count / seconds if between is None else between

    def row(self, seconds: float) -> tuple[str, str, str, str, str]:
        """Return topic, rate, bandwidth, mean size and type as text, heard for ``seconds``."""
        return (
            self.topic,
            f"{self.rate_hz(seconds):.1f} Hz",
            f"{byte_size(self.bytes / seconds)}/s",
            byte_size(self.bytes / self.count),
            split_channel(self.channel)[1] or "?",
        )

    def interval_text(self) -> str:
        """Return the shortest and longest time between two messages; empty if there were not two."""
        if self.count < 2:
            return ""
        return f"every {self.shortest_s * 1000:.1f} to {self.longest_s * 1000:.1f} ms"

    def to_dict(self, seconds: float) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {
            "topic": self.topic,
            "type": split_channel(self.channel)[1],
            "messages": self.count,
            "rate_hz": round(self.rate_hz(seconds), 3),
            "bytes_per_s": round(self.bytes / seconds, 1),
            "mean_size": round(self.bytes / self.count, 1),
        }


class TrafficMeter:
    """A meter that counts by channel. The number of channels is bounded: more are not counted."""

    _MAX_CHANNELS = 10_000

    def __init__(self) -> None:
        self._channels: dict[str, Traffic] = {}

    def on_message(self, channel: str, data: bytes) -> None:
        """Count a message; a handler for a bus."""
        if channel in self._channels or len(self._channels) < self._MAX_CHANNELS:
            self._channels.setdefault(channel, Traffic(channel)).add(len(data), clock.monotonic())

    def channels(self) -> list[Traffic]:
        """Return the channels that were heard, by name."""
        return [self._channels[channel] for channel in sorted(self._channels)]

    def clear(self) -> None:
        """Forget it all and count anew."""
        self._channels.clear()


def matches(channel: str, wanted: str) -> bool:
    """Return whether a channel is the one wanted, named with or without its type."""
    return channel == wanted or split_channel(channel)[0] == wanted
