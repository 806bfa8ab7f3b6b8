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
from tests.delivery.simulated_run import simulate

pytestmark = pytest.mark.slow

_SLICE = 25
_SHOWN = 5
_DIGEST_SEEDS = (3, 14, 15)


@pytest.fixture
def directory() -> Iterator[Path]:
    """For journals: in memory where that can be had, because the disk is not what is tested."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() and os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A thousand seeds are many tests, so that processors can share them; one that was asked for is one."""
    if "seeds" in metafunc.fixturenames:
        one = metafunc.config.getoption("--delivery-seed", None)
        last = metafunc.config.getoption("--delivery-seeds", 1000)
        slices = [range(at, min(at + _SLICE, last)) for at in range(0, last, _SLICE)]
        chosen = slices if one is None else [range(one, one + 1)]
        metafunc.parametrize("seeds", chosen, ids=[f"{seeds[0]}-{seeds[-1]}" for seeds in chosen])


@pytest.mark.feature("F1")
def test_the_promises_hold(seeds: range, directory: Path) -> None:
    failures = [failure for seed in seeds if (failure := check(seed, directory, verbose=len(seeds) == 1))]
    assert not failures, "\n\n".join([f"{len(failures)} of {len(seeds)} seeds:", *failures[:_SHOWN]])


def test_a_seed_is_a_run(directory: Path) -> None:
    """In processes that hash differently."""
    script = (
        "import sys, logging; from pathlib import Path; from tests.delivery.simulated_run import simulate;"
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


def check(seed: int, directory: Path, *, verbose: bool = False) -> str:
    """Run a seed; what is wrong with it, nothing if the promises hold."""
    try:
        outcome = simulate(seed, directory)
        problems, trace = broken(outcome), outcome.trace
    except Exception as error:
        logging.getLogger(__name__).exception("seed %d", seed)
        return f"seed {seed}: {error!r}\n{_replay(seed)}"
    if verbose:
        print(schedule(seed), *trace, sep="\n")  # noqa: T201
    return "\n".join([f"seed {seed} breaks promises:", *problems, _replay(seed)]) if problems else ""


def _replay(seed: int) -> str:
    return f"replay it: python -m pytest tests/delivery/test_simulation.py -s --delivery-seed {seed}"
