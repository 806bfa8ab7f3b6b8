"""The LCM log format: events one after another, each a header, a channel and data. There is no index, no checksum."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

SYNC = 0xEDA1DA01
SYNC_BYTES = SYNC.to_bytes(4, "big")
HEADER = struct.Struct(">Iqqii")
"""Sync word, event number, µs since the Unix epoch, lengths of channel and data."""
LONGEST_CHANNEL = 999
"""LCM's own reader takes no longer names."""
POSSIBLE_HEADER = re.compile(re.escape(SYNC_BYTES) + rb"(?=.{16}\0\0[\0-\3].\0[\0-\x80]..)", re.DOTALL)
"""A sync word with a header behind it whose lengths may be those of a channel and a message: a name of up to 1023
bytes, 8.5 MB."""


class LogEvent(NamedTuple):
    """One message of a log."""

    number: int
    """The position in the log, counted from 0."""
    utime: int
    """The time at which it was recorded, µs since the Unix epoch."""
    channel: str
    data: bytes
    offset: int
    """The position of its header in the file, in bytes."""


def pack(number: int, utime: int, channel: str, data: bytes) -> bytes:
    """An event as it stands in a log. Raises ``ValueError`` for a channel name that no reader takes."""
    name = channel.encode()
    if not 0 < len(name) <= LONGEST_CHANNEL:
        raise ValueError(f"a log's channel name has 1 to {LONGEST_CHANNEL} bytes, not {len(name)}: {channel[:80]!r}")
    return b"".join((HEADER.pack(SYNC, number, utime, len(name), len(data)), name, data))


def successor(number: int) -> bytes:
    """Return the first bytes of the event after number ``number``."""
    return SYNC_BYTES + number_after(number).to_bytes(8, "big")


def number_after(number: int) -> int:
    """Return the number of the event after number ``number``, of 64 bits without a sign."""
    return (number + 1) & 0xFFFF_FFFF_FFFF_FFFF
