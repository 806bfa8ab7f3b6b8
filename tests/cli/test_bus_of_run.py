"""Which bus the commands beside a run listen on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.bus.url import VARIABLES
from dimos_streams.cli.bridge_client.connection import find_bus_url
from dimos_streams.runtime import registry
from tests.runtime.run_records import living_record


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_bus_of_a_run_counts_more_than_the_environment(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    monkeypatch.setenv(variable, "udpm://239.1.2.3:4567")
    assert find_bus_url(None) == "udpm://239.1.2.3:4567"
    registry.write(living_record().model_copy(update={"bus_url": "zenoh://127.0.0.1:7447"}))
    assert find_bus_url(None) == "zenoh://127.0.0.1:7447"
    assert find_bus_url("udpm://239.9.9.9:1000") == "udpm://239.9.9.9:1000"
