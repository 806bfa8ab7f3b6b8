"""Simulates whole fleets, and shows what is wrong with them.

python -m tests.fleet.simulation 7          one run: its orders, and each promise that is broken
python -m tests.fleet.simulation 1 1000     these runs: each that breaks a promise
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from tests.fleet.simulation.plan import plan
from tests.fleet.simulation.promises import broken
from tests.fleet.simulation.simulated_run import Outcome, simulate
from tests.seeds import try_seeds


def _simulate(seed: int, directory: Path) -> Outcome:
    return simulate(plan(seed), directory)


def _shown(run: Outcome) -> Iterable[object]:
    return [run.plan, *run.orders]


if __name__ == "__main__":
    sys.exit(bool(try_seeds(sys.argv[1:], _simulate, broken, _shown)))
