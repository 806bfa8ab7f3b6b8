"""Results as people read them."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence

from benchmarks.result import Result


def machine_line() -> str:
    """What results were measured on: the system, Python's version and the number of cores."""
    return f"{platform.system()}, Python {platform.python_version()}, {os.cpu_count()} cores"


def print_table(results: Sequence[Result]) -> None:
    """One line a result; ours are compared with the floor of the same run, and a peer's with ours."""
    print(machine_line())
    print(f"{'':32}{'received':>16}{'order':>7}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}{'events/s':>10}  p50 / floor")
    floors = {result.name: result.p50_ms for result in results if result.name.startswith("floor")}
    ours = {result.name: result for result in results}
    for result in results:
        received = f"{result.received}/{result.sent}"
        order = "yes" if result.in_order else "NO"
        line = f"{result.name:32}{received:>16}{order:>7}{result.p50_ms:9.3f}{result.p99_ms:9.3f}{result.max_ms:9.3f}"
        floor = sum(value for name, value in floors.items() if name.endswith(f", {result.name}"))
        times = f"x {result.p50_ms / floor:.1f}" if floor else ""
        if result.peer_of and result.received:
            times = _ratio(ours[result.peer_of], result)
        print(f"{line}{result.events_per_s:10}  {times}{result.remark}".rstrip())


def _ratio(ours: Result, theirs: Result) -> str:
    """The ratios of our figures to a peer's: below 1 our latency is the lower, above 1 our rate is the higher."""
    p50, p99 = ours.p50_ms / theirs.p50_ms, ours.p99_ms / theirs.p99_ms
    rate = ours.events_per_s / theirs.events_per_s
    return f"ours / theirs: p50 {p50:.2f}, p99 {p99:.2f}, events/s {rate:.2f}"
