"""A plugin for pytest under ``coverage run``: each test is a context of the coverage data, named by its node id."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from coverage import Coverage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    coverage = Coverage.current()
    assert coverage is not None, "run it with: coverage run -m pytest -p tests.mutation.contexts -n0"
    coverage.switch_context(item.nodeid)
    try:
        yield
    finally:
        coverage.switch_context("")
