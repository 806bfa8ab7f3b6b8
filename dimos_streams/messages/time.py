"""Microseconds since the Unix epoch to and from the headers of messages."""

from __future__ import annotations

from typing import Any

from dimos_streams.messages.std_msgs import Header, Time

_US_PER_S = 1_000_000
_NS_PER_US = 1_000


def header(frame_id: str, utime: int) -> Header:
    """A header for data of the frame ``frame_id`` taken at ``utime`` (µs since the Unix epoch)."""
    seconds, microseconds = divmod(utime, _US_PER_S)
    return Header(stamp=Time(sec=seconds, nsec=microseconds * _NS_PER_US), frame_id=frame_id)


def utime_of(header: Header) -> int:
    """The stamp of a header, µs since the Unix epoch; nanoseconds are cut off."""
    return header.stamp.sec * _US_PER_S + header.stamp.nsec // _NS_PER_US


def is_repeated(message: Any, before: Any) -> bool:
    """Return whether two messages have the same stamp, so that nothing was measured between them. A stamp of 0 is no
    stamp."""
    stamp = utime_of(message.header)
    return stamp != 0 and stamp == utime_of(before.header)
