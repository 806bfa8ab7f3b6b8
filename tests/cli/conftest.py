"""Machines for the tests of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bridge.journals import opened
from tests.cli.machine import ROVER, Machine

__all__ = ["machine", "opened", "rover"]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine on which nothing runs, nor after the test."""
    made = Machine(tmp_path / "state")
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def rover(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine on which the rover runs in the background."""
    machine = Machine(tmp_path_factory.mktemp("state"))
    started = machine("run", ROVER, "--daemon", "--port", str(machine.port))
    assert started.code == 0, started
    yield machine
    stopped = machine("stop")
    assert stopped.code == 0, stopped
    assert machine.leaves_nothing()
