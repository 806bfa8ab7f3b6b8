"""A fleet keeps its promises, whatever operators order and whatever breaks; a seed is a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.simulation.plan import plan
from tests.fleet.simulation.promises import broken
from tests.fleet.simulation.simulated_run import simulate

pytestmark = [pytest.mark.slow, pytest.mark.feature("H2")]


@pytest.mark.parametrize("seed", [4212, 6441])
def test_promises_hold(seed: int, tmp_path: Path) -> None:
    """The hub and a bridge are killed in both. In one a run ends, and a database is put back; in the other skills are
    killed, a robot is replaced, and so is a token, and a disk is full. Longer runs are for ``__main__``."""
    problems = broken(simulate(plan(seed, is_short=True), tmp_path))
    assert not problems, "\n".join(map(str, problems))
