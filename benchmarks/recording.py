"""Writing and reading logs, beside LCM's own EventLog: ``python -m benchmarks.recording [--quick] [--json]``."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import lcm

from benchmarks.table import machine_line
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.summary import summarize
from dimos_streams.recording.writer import LogWriter
from dimos_streams.regression.replay import ReplayOptions, replay

CHANNELS = ("/cmd_vel#geometry_msgs.Twist", "/odom#nav_msgs.Odometry", "/scan#sensor_msgs.LaserScan")
SMALL, LARGE = bytes(56), bytes(20_000)
ROUNDS = 3
INFO = """
import sys
from dimos_streams.cli.entry import run_command
run_command(["recording", "info", sys.argv[1]])
print(open("/proc/self/status").read())
"""
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


def memory_mb(path: Path) -> float:
    """The most memory that `recording info` takes as a process of its own."""
    done = subprocess.run([sys.executable, "-c", INFO, str(path)], capture_output=True, text=True, check=True)
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stdout)
    return round(int(peak) / 1000, 1)


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: what was measured, in which unit, here and with EventLog."""

    name: str
    unit: str
    ours: float
    event_log: float | None = None


def measure(folder: Path, count: int, gigabytes: float) -> list[Figure]:
    small, large = folder / "small.lcmlog", folder / "large.lcmlog"
    writing = rate(count, lambda: write_theirs(small, count, SMALL))
    figures = [Figure("write", "messages/s", rate(count, lambda: write_ours(small, count, SMALL)), writing)]
    reading = rate(count, lambda: read_theirs(small))
    figures.append(Figure("read", "messages/s", rate(count, lambda: read_ours(small)), reading))
    figures.append(Figure("recording info", "messages/s", rate(count, lambda: info(small))))
    events = read_ours(GOLDEN)
    replayed = rate(events, lambda: replay(GOLDEN, ReplayOptions(modules=("follow",))))
    figures.append(Figure("replay and compare (follow)", "events of the log/s", replayed))
    write_ours(large, round(gigabytes * 1e9 / len(LARGE)), LARGE)
    size = large.stat().st_size
    reading = round(rate(size, lambda: read_theirs(large)) / 1e6)
    figures.append(
        Figure(f"read {gigabytes:g} GB", "MB/s", round(rate(size, lambda: read_ours(large)) / 1e6), reading)
    )
    figures.append(
        Figure(f"recording info of {gigabytes:g} GB", "MB/s", round(rate(size, lambda: info(large)) / 1e6))
    )
    figures.append(Figure("the same, memory of the command", "MB", memory_mb(large)))
    figures.append(Figure(f"for {round(small.stat().st_size / 1e6)} MB", "MB", memory_mb(small)))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller logs")
    parser.add_argument("--json", action="store_true", help="the numbers for programs")
    arguments = parser.parse_args()
    count, gigabytes = (50_000, 0.1) if arguments.quick else (400_000, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), count, gigabytes)
    machine = machine_line()
    if arguments.json:
        print(json.dumps({"machine": machine, "figures": [asdict(figure) for figure in figures]}, indent=2))
        return
    print(f"{machine}; small messages are of {len(SMALL)} bytes, those of large logs of {len(LARGE):,}")
    print(f"{'':34}{'':20}{'ours':>12}{'EventLog':>12}")
    for figure in figures:
        theirs = "" if figure.event_log is None else f"{figure.event_log:,}"
        print(f"{figure.name:34}{figure.unit:20}{figure.ours:>12,}{theirs:>12}")


if __name__ == "__main__":
    main()
