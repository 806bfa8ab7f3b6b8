"""Runs simulations by their seeds, and shows which promises break: for those that a folder's ``__main__`` begins."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

Run = TypeVar("Run")


def try_seeds(
    seeds: Sequence[str],
    simulate: Callable[[int, Path], Run],
    broken: Callable[[Run], Iterable[str]],
    shown: Callable[[Run], Iterable[object]],
) -> int:
    """Run one seed and show all of its run, or those from a first to a last one and show what is wrong with any.
    Return how many of them break a promise."""
    first, last = int(seeds[0]), int(seeds[-1])
    failed = 0
    for seed in range(first, last + 1):
        with tempfile.TemporaryDirectory() as directory:
            run = simulate(seed, Path(directory))
        problems = list(broken(run))
        failed += bool(problems)
        lines = [*(shown(run) if len(seeds) == 1 else ()), *problems]
        if lines:
            sys.stdout.write("\n  ".join(map(str, (f"seed {seed}", *lines))) + "\n")
            sys.stdout.flush()
    return failed
