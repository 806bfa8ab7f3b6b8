"""Missions that many tests replay are recorded once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.cli.entry import run_command
from dimos_streams.recording.selection import Selection
from tests.recording.recorded import record_mission


@pytest.fixture(scope="session")
def mission_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A look-out, a follow and a turn, without pictures. Not to be written to."""
    return record_mission(tmp_path_factory.mktemp("logs") / "mission.lcmlog", turn=True)


@pytest.fixture(scope="session")
def picture_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seconds of it with all channels. Not to be written to."""
    return record_mission(tmp_path_factory.mktemp("logs") / "pictures.lcmlog", follow_s=3.0, selection=Selection())


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Runs a command of a user whose files others may read; its exit code, standard output and standard error."""
    before = os.umask(0o022)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = run_command([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    yield run
    os.umask(before)
