"""Empty names, as a script has them whose variable is not set: they mean nothing, and not everything."""

from __future__ import annotations

import pytest

from dimos_streams.cli.entry import run_command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["stop", "--machine="], "--machine '' names no machine; "),
        (["logs", "--machine="], "--machine '' names no machine; "),
        (["call", "turn", "--robot="], "--robot '' names no robot of the fleet"),
        (["release-robot", "", "--port", "9"], "'' names no robot: nothing is released; "),
    ],
)
def test_an_empty_name_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(arguments) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")
