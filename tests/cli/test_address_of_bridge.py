"""The address at which a run's own modules and commands look for its bridge."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.cli.option_groups.run_request import RunRequest
from dimos_streams.cli.running.run_plan import prepare
from tests.runtime.run_records import living_record


@pytest.mark.parametrize(
    ("host", "url"),
    [
        (None, "http://127.0.0.1:7781"),
        ("0.0.0.0", "http://127.0.0.1:7781"),
        ("::", "http://[::1]:7781"),
        ("::1", "http://[::1]:7781"),
        ("192.0.2.7", "http://192.0.2.7:7781"),
        ("robot.local", "http://robot.local:7781"),
    ],
)
def test_a_run_looks_for_its_bridge_where_that_serves(
    host: str | None, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    settings = [] if host is None else [f"bridge.host={host}"]
    options = prepare(
        RunRequest(reference="follow-person", settings=settings, port=7781, virtual_time=True)
    ).options()
    assert options.bridge_url == url
    record = living_record().model_copy(update={"host": options.host, "port": options.port})
    assert record.bridge_url == url
