"""The way into the background: what the command says of a run that has not come to it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

import pytest

from dimos_streams.cli.running.daemon import _wait_for


@pytest.mark.parametrize(("number", "name"), [(signal.SIGKILL, "SIGKILL"), (40, "signal 40")])
def test_a_run_that_a_signal_has_ended_is_said_to_be(
    number: int, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exited(code: int) -> None:
        raise SystemExit(code)

    reader, writer = os.pipe()
    os.close(writer)
    monkeypatch.setattr(os, "_exit", exited)
    with contextlib.closing(os.fdopen(reader)), subprocess.Popen(["sleep", "600"]) as run:
        os.kill(run.pid, number)
        with pytest.raises(SystemExit, match="1"):
            _wait_for(run.pid, reader)
    assert capsys.readouterr().err == f"error: the run was ended by {name} before it was ready\n"
