"""A plugin for pytest under ``coverage run``: each test is a context of the coverage data, named by its node id.

The processes that a test starts are measured with its context too: it reaches them in their environment. One that is
killed leaves nothing, and one that several tests share counts for the first of them.
"""

from __future__ import annotations

import multiprocessing.forkserver
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage

_HERE = Path(__file__).parent


def pytest_configure() -> None:
    os.environ["COVERAGE_PROCESS_START"] = str(_HERE / "coveragerc")
    os.environ["COVERAGE_FILE"] = str(Path(os.environ.get("COVERAGE_FILE", ".coverage")).resolve())
    path = [str(_HERE / "startup"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    coverage = Coverage.current()
    assert coverage is not None, "run it with: coverage run --rcfile=tests/mutation/coveragerc -m pytest -p … -n0"
    coverage.switch_context(item.nodeid)
    os.environ["TEST_OF_COVERAGE"] = item.nodeid
    try:
        return (yield)
    finally:
        coverage.switch_context("")
        # Workers have the environment in which the process began that forks them.
        multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]
