"""What a process and all that it has begun take of the machine, from ``/proc``."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _USED = 1, slice(11, 15)
"""Fields of ``stat`` behind the name: parent; user, system, and both of children that were waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What processes take together."""

    processes: int
    processor_s: float
    memory_mb: float
    """Proportional set size: what several share is divided among them."""


def usage_of(root: int, *, memory: bool = False) -> Usage:
    """What a process and its descendants have taken; ``memory``, which takes a while to count, is 0 without it."""
    pids = list(tree_of(root))
    stats = [fields for pid in pids if (fields := _stat(pid))]
    ticks = sum(int(value) for fields in stats for value in fields[_USED])
    return Usage(
        processes=len(stats),
        processor_s=ticks / _TICKS,
        memory_mb=sum(map(_pss_mb, pids)) if memory else 0.0,
    )


def tree_of(root: int) -> Iterator[int]:
    """A process and all its descendants."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (fields := _stat(int(entry.name))):
            children[int(fields[_PARENT])].append(int(entry.name))
    found = [root]
    while found:
        pid = found.pop()
        yield pid
        found += children[pid]


def _stat(pid: int) -> list[str]:
    """The fields behind the name; none of a process that has gone."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _pss_mb(pid: int) -> float:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
