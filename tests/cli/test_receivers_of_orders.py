"""Which bridges an operator's orders go to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.cli.bridge_client.robot_orders import receivers
from dimos_streams.runtime import registry
from tests.runtime.test_registry import living_record


@pytest.mark.parametrize(
    ("port", "bridge", "url"),
    [
        (8420, None, "http://127.0.0.1:8420"),
        (None, "http://127.0.0.1:8421", "http://127.0.0.1:8421"),
        (None, None, None),
    ],
    ids=["its own bridge", "that of another machine", "none that could be asked"],
)
def test_a_run_is_stopped_by_the_bridge_that_its_other_commands_ask(
    port: int | None, bridge: str | None, url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    record = living_record().model_copy(update={"port": port, "bridge": bridge, "token": "secret"})
    registry.write(record)
    (receiver,) = receivers(None, None, None, None)
    assert receiver.name == record.run_id
    assert (receiver.address and receiver.address.url) == url
    assert (receiver.address and receiver.address.token) == (url and "secret")
