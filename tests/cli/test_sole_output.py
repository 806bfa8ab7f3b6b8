"""JSON is alone on standard output, whatever modules print: programs read it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dimos_streams.cli.commands import run
from dimos_streams.cli.entry import run_command
from dimos_streams.cli.running import daemon, session
from dimos_streams.cli.terminal.output import sole_output, write
from dimos_streams.common import importing
from dimos_streams.common.importing import import_module

TALKING = """
from dimos_streams.module import Module

print("a library greets")


class Talking(Module):
    @classmethod
    def problems(cls, config):
        print("it is checked")
        return []

    async def start(self):
        print("it starts")
"""


@pytest.fixture
def talking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A blueprint with a module that prints; the working directory is the blueprint's folder."""
    (tmp_path / f"{tmp_path.name}.py").write_text(TALKING)
    (tmp_path / "talking.yaml").write_text(f"modules:\n  m: {{type: '{tmp_path.name}:Talking'}}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(importing, "_first", [])
    return "talking.yaml"


def test_what_a_module_prints_while_it_is_checked_is_no_json(
    talking: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["check", talking, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["ok"] is True
    assert said.err.split("\n")[:2] == ["a library greets", "it is checked"]


def test_what_a_module_prints_while_it_runs_is_no_json(talking: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", talking, "--virtual-time", "--duration", "1", "--json"]) == 0
    said = capsys.readouterr()
    assert [json.loads(line)["kind"] for line in said.out.splitlines()][-1] == "summary"
    assert "it starts" in said.err.splitlines()


def test_what_a_module_prints_before_its_run_is_in_the_background_is_no_json(
    talking: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_session(plan: object, on_ready: Callable[[object], None]) -> int:
        sys.stdout.write("it is checked again\n")
        on_ready(None)
        sys.stdout.write("what the log has\n")
        return 0

    monkeypatch.setattr(daemon, "detach", lambda alone, as_json: lambda record: alone.close())
    monkeypatch.setattr(session, "run_session", run_session)
    monkeypatch.setattr(run, "_fork_server", lambda *_: None)
    assert run_command(["run", talking, "--daemon", "--json"]) == 0
    assert capsys.readouterr() == ("what the log has\n", "a library greets\nit is checked\nit is checked again\n")


def test_an_import_in_a_thread_takes_nobody_s_output(talking: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = Path.cwd().name
    thread = threading.Thread(target=import_module, args=(name,))
    thread.start()
    thread.join()
    assert capsys.readouterr() == ("a library greets\n", "")


def test_the_output_comes_back(capsys: pytest.CaptureFixture[str]) -> None:
    with sole_output():
        sys.stdout.write("a module\n")
        write("ours")
    sys.stdout.write("whoever is next\n")
    assert capsys.readouterr() == ("ours\nwhoever is next\n", "a module\n")
