"""The table of runs that have ended has a line for each, whatever they ended with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dimos_streams.cli.entry import run_command
from dimos_streams.runtime import ended_runs
from dimos_streams.runtime.ended_runs import EndedRun

HOW = f"failed: {'module agent runs already; ' * 20}"


def test_a_long_reason_leaves_room_for_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = [
        EndedRun("a-1", "a", None, 1, 2, HOW, Path("/runs/a")),
        EndedRun("b-2", "b", None, 1, 2, "stopped", Path("/b")),
    ]
    monkeypatch.setattr(ended_runs, "ended_runs", lambda: ended)
    assert run_command(["status", "--all"]) == 0
    names, first, second = capsys.readouterr().out.splitlines()
    assert "failed: module agent runs already; " in first
    assert max(map(len, (names, first, second))) < 200
    assert run_command(["status", "--all", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ended"][0]["how"] == HOW
