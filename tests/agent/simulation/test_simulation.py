"""Whole systems keep their promises, whatever operators order and whatever breaks; a seed is a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.simulation.plan import plan
from tests.agent.simulation.promises import broken
from tests.agent.simulation.simulated_run import simulate

pytestmark = [pytest.mark.slow, pytest.mark.feature("B3", "B5", "F1")]

SEEDS = range(1, 9)


@pytest.mark.parametrize("seed", SEEDS)
def test_promises_hold(seed: int, tmp_path: Path) -> None:
    problems = broken(simulate(plan(seed), tmp_path))
    assert not problems, "\n".join([f"python -m tests.agent.simulation {seed}", *problems])


def test_a_seed_is_a_run(tmp_path: Path) -> None:
    digests = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        digests.append(simulate(plan(SEEDS[0]), tmp_path / name).digest)
    assert digests[0] == digests[1]
