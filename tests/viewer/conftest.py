"""The mission that all tests look at is recorded once."""

from __future__ import annotations

import pytest

from tests.viewer.mission import Mission, record


@pytest.fixture(scope="package")
def mission(tmp_path_factory: pytest.TempPathFactory) -> Mission:
    """Not to be written to."""
    return record(tmp_path_factory.mktemp("logs") / "mission.lcmlog")
