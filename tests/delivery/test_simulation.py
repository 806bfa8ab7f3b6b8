"""A thousand ways in which things go wrong, and what holds all the same."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delivery.promises import broken
from tests.delivery.schedule import schedule
from tests.delivery.world import Outcome, Simulation
from tests.helpers import run_virtual

_BATCHES = 20
_DIGEST_SEEDS = (3, 14, 15)


@pytest.fixture
def directory() -> Iterator[Path]:
    """For journals: in memory where that can be had, because the disk is not what is tested."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() and os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


def simulate(seed: int, directory: Path) -> Outcome:
    """One run."""
    return run_virtual(Simulation(schedule(seed), directory).run())


@pytest.mark.feature("F1")
@pytest.mark.parametrize("batch", range(_BATCHES))
def test_the_promises_hold(batch: int, directory: Path, pytestconfig: pytest.Config) -> None:
    one = pytestconfig.getoption("--delivery-seed", None)
    count = pytestconfig.getoption("--delivery-seeds", 1000)
    # What the parts say of the faults that they meet would drown everything else.
    logging.disable(logging.CRITICAL if one is None else logging.DEBUG)
    try:
        for seed in range(batch, count, _BATCHES) if one is None else [one][batch:]:
            _check(seed, directory, verbose=one is not None)
    finally:
        logging.disable(logging.NOTSET)


def test_a_seed_is_a_run(directory: Path) -> None:
    """In processes that hash differently."""
    script = (
        "import sys, logging; from pathlib import Path; from tests.delivery.test_simulation import simulate;"
        "logging.disable(logging.CRITICAL);"
        f"print(*(simulate(seed, Path(sys.argv[1])).digest() for seed in {_DIGEST_SEEDS}))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script, str(directory)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


def _check(seed: int, directory: Path, *, verbose: bool) -> None:
    try:
        outcome = simulate(seed, directory)
        problems, trace = broken(outcome), outcome.trace
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r}\n{_replay(seed)}") from error
    if verbose:
        print(schedule(seed), *trace, sep="\n")  # noqa: T201
    assert not problems, "\n".join([f"seed {seed} breaks promises:", *problems, _replay(seed)])


def _replay(seed: int) -> str:
    return f"replay it: python -m pytest tests/delivery/test_simulation.py -s --delivery-seed {seed}"
