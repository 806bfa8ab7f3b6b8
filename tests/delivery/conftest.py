"""Options of the simulation: which schedules to run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("delivery")
    group.addoption("--delivery-seeds", type=int, default=1000, help="how many schedules the simulation runs")
    group.addoption("--delivery-seed", type=int, default=None, help="run this one schedule and print its trace")
