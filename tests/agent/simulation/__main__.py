"""Simulates whole systems, and shows what is wrong with them.

python -m tests.agent.simulation 7          one run: its orders, and each promise that is broken
python -m tests.agent.simulation 1 1000     these runs: each that breaks a promise
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from tests.agent.simulation.plan import plan
from tests.agent.simulation.promises import broken
from tests.agent.simulation.simulated_run import Outcome, simulate
from tests.seeds import try_seeds


def _simulate(seed: int, directory: Path) -> Outcome:
    return simulate(plan(seed), directory)


def _shown(run: Outcome) -> Iterable[object]:
    return [*run.plan.steps, *sorted(run.orders, key=lambda order: order.over)]


if __name__ == "__main__":
    sys.exit(bool(try_seeds(sys.argv[1:], _simulate, broken, _shown)))
