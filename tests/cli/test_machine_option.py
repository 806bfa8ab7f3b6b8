"""The name of a machine that commands are given."""

from __future__ import annotations

import pytest

from dimos_streams.cli.entry import run_command


@pytest.mark.parametrize("command", ["stop", "logs"])
def test_an_empty_machine_is_no_machine_and_not_the_runs_without_one(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([command, "--machine="]) == 2
    assert capsys.readouterr().err.startswith("error: --machine '' names no machine; ")
