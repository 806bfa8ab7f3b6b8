"""What doctor finds on a machine on which no run can keep its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dimos_streams.cli.entry import run_command
from dimos_streams.cli.system import machine_checks
from dimos_streams.cli.system.finding import Finding


@pytest.mark.parametrize("place", ["~nobody-at-all/state", "{file}", "{file}/below"])
def test_a_state_directory_that_can_not_be_is_one_finding_among_the_others(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a container whose user has no home: what else the machine lacks is seen at once."""

    async def quiet(text: str) -> list[Finding]:
        return [Finding("bus", "ok", text)]

    monkeypatch.setattr(machine_checks, "_bus", quiet)
    (file := tmp_path / "file").write_text("")
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", place.format(file=file))
    code = run_command(["doctor", "--port", "0", "--json"])
    output = capsys.readouterr()
    found = {finding["name"]: finding["severity"] for finding in json.loads(output.out)["findings"]}
    assert (code, output.err) == (1, "")
    assert [name for name, severity in found.items() if severity == "error"] == ["state directory"]
    assert {"python", "bus", "bridge port", "mujoco"} <= found.keys()
