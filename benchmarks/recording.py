"""Writing and reading logs, beside LCM's own EventLog: ``python -m benchmarks.recording [--quick] [--json]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lcm

from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.summary import summarize
from dimos_streams.recording.writer import LogWriter
from dimos_streams.regression.replay import ReplayOptions, replay

CHANNELS = ("/cmd_vel#geometry_msgs.Twist", "/odom#nav_msgs.Odometry", "/scan#sensor_msgs.LaserScan")
SMALL, LARGE = bytes(56), bytes(20_000)
ROUNDS = 3
GOLDEN = Path(__file__).parents[1] / "tests" / "recording" / "golden" / "follow-person.lcmlog"


def rate(count: int, work: Callable[[], object]) -> int:
    """Messages a second, the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return round(count / best)


def write_ours(path: Path, count: int, data: bytes) -> None:
    with LogWriter(path) as writer:
        for number in range(count):
            writer.write(1_600_000_000_000_000 + number * 100, CHANNELS[number % 3], data)


def write_theirs(path: Path, count: int, data: bytes) -> None:
    log = lcm.EventLog(str(path), "w", overwrite=True)
    for number in range(count):
        log.write_event(1_600_000_000_000_000 + number * 100, CHANNELS[number % 3], data)
    log.close()


def read_ours(path: Path) -> int:
    with LogReader(path) as log:
        return sum(1 for _ in log.events())


def read_theirs(path: Path) -> int:
    log = lcm.EventLog(str(path))
    count = sum(1 for _ in log)
    log.close()
    return count


def info(path: Path) -> int:
    with LogReader(path) as log:
        return summarize([log]).events


def peak_mb() -> float:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(folder: Path, count: int, gigabytes: float) -> dict[str, float]:
    small, large = folder / "small.lcmlog", folder / "large.lcmlog"
    found: dict[str, float] = {
        "write, EventLog, messages/s": rate(count, lambda: write_theirs(small, count, SMALL)),
        "write, ours, messages/s": rate(count, lambda: write_ours(small, count, SMALL)),
        "read, EventLog, messages/s": rate(count, lambda: read_theirs(small)),
        "read, ours, messages/s": rate(count, lambda: read_ours(small)),
        "recording info, messages/s": rate(count, lambda: info(small)),
    }
    replay(GOLDEN, ReplayOptions(modules=("follow",)))
    events = read_ours(GOLDEN)
    replayed = rate(events, lambda: replay(GOLDEN, ReplayOptions(modules=("follow",))))
    found["replay and compare (follow), events of the log/s"] = replayed
    large_count = round(gigabytes * 1e9 / len(LARGE))
    write_ours(large, large_count, LARGE)
    before = peak_mb()
    found[f"recording info of {gigabytes:g} GB, MB/s"] = round(rate(large.stat().st_size, lambda: info(large)) / 1e6)
    found[f"recording info of {gigabytes:g} GB, MB of memory more than before"] = round(peak_mb() - before, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller logs")
    parser.add_argument("--json", action="store_true", help="the numbers for programs")
    arguments = parser.parse_args()
    count, gigabytes = (50_000, 0.1) if arguments.quick else (400_000, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), count, gigabytes)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{platform.system()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    for name, value in found.items():
        print(f"{name:60}{value:>12,}")


if __name__ == "__main__":
    main()
