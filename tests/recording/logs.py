"""Logs as tests make and break them."""

from __future__ import annotations

import random
import resource
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dimos_streams.recording.format import HEADER, LogEvent
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.writer import LogWriter

Raw = tuple[int, str, bytes]
"""Time, channel, data."""
START = 1_600_000_000_000_000


def some_events(count: int, seed: int = 0) -> list[Raw]:
    """Events of different channels and sizes, the empty one and one larger than a reader's chunk among them."""
    random_ = random.Random(seed)
    channels = ["/odom#nav_msgs.Odometry", "/x", "ÄÖ#std_msgs.String", "FOREIGN"]
    sizes = [0, 1, 36, 200, 5000]
    return [
        (START + 10_000 * number, random_.choice(channels), random_.randbytes(random_.choice(sizes)))
        for number in range(count)
    ]


def write_log(path: Path, events: Iterable[Raw]) -> Path:
    with LogWriter(path) as writer:
        for event in events:
            writer.write(*event)
    return path


def read_log(path: Path) -> list[LogEvent]:
    with LogReader(path) as reader:
        return list(reader.events())


def raw(events: Iterable[LogEvent]) -> list[Raw]:
    return [(event.utime, event.channel, event.data) for event in events]


def size_of(event: Raw) -> int:
    return HEADER.size + len(event[1].encode()) + len(event[2])


@contextmanager
def full_disk() -> Iterator[None]:
    """Have this process write no files, as if there were no room for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
