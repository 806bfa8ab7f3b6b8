"""Commands that are shown to people can be pasted as they are, wherever things are installed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from dimos_streams.cli.commands.messages import java as write_java
from dimos_streams.cli.system.finding import installing
from dimos_streams.messages.generation import java


def test_an_extra_is_installed_by_a_python_in_a_folder_with_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/home/ann/my robot/.venv/bin/python")
    assert shlex.split(installing("sim")) == [sys.executable, "-m", "pip", "install", "dimos-streams[sim]"]


def test_java_is_compiled_from_and_with_folders_with_blanks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(java, "java_classes", lambda folders: {})
    monkeypatch.setattr(java, "lcm_jar", lambda: Path("/home/ann/my robot/lcm.jar"))
    write_java(tmp_path / "a spy")
    command = shlex.split(capsys.readouterr().err.partition(": ")[2])
    assert command[:2] == ["find", str(tmp_path / "a spy")]
    assert command[command.index("-cp") + 1] == "/home/ann/my robot/lcm.jar"
