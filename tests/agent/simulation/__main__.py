"""Simulates whole systems, and shows what is wrong with them.

python -m tests.agent.simulation 7          one run: its orders, and each promise that is broken
python -m tests.agent.simulation 1 1000     these runs: each that breaks a promise
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.agent.simulation.plan import plan
from tests.agent.simulation.promises import broken
from tests.agent.simulation.simulated_run import simulate


def main(first: int, last: int | None = None) -> int:
    """Run these seeds; return how many of them break a promise."""
    failed = 0
    for seed in range(first, (last or first) + 1):
        with tempfile.TemporaryDirectory() as directory:
            run = simulate(plan(seed), Path(directory))
        problems = broken(run)
        failed += bool(problems)
        shown = [*run.plan.steps, *sorted(run.orders, key=lambda order: order.over)] if last is None else []
        if shown or problems:
            sys.stdout.write("\n  ".join(map(str, (f"seed {seed}", *shown, *problems))) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
