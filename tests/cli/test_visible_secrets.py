"""What the command line shows to every user of the machine."""

from __future__ import annotations

import pytest
import typer

from dimos_streams.cli.commands.of_hubs.database import Database
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.option_groups.run_request import RunRequest
from dimos_streams.cli.option_groups.ungrouped import ungrouped
from dimos_streams.cli.terminal.options import BusUrl


def look(bus: BusUrl = None, database: Database = "", *, bridge: BridgeChoice) -> None:
    """Do nothing."""


def run(*, request: RunRequest) -> None:
    """Do nothing."""


@pytest.mark.feature("F6")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--bus", "zenoh://ann:passwd@/"], "--bus shows a secret in the list of processes, to every user; DIMOS_"),
        (["--bus", "zenoh://127.0.0.1:7447"], ""),
        (["--database", "postgresql://hub:passwd@db/hub"], "to every user; DIMOS_STREAMS_DATABASE does not"),
        (["--database", "postgresql://db/hub?password=passwd"], "--database shows a secret"),
        (["--database", "postgresql://db/hub"], ""),
        (["--url", "https://ann:passwd@robot"], "--url shows a secret in the list of processes, to every user\n"),
        ([], ""),
    ],
)
def test_a_password_in_a_url_of_the_command_line_is_said_to_be_seen(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_DATABASE", "postgresql://hub:passwd@db/hub")
    err = shown(look, given, capsys)
    assert said in err
    assert bool(err) is bool(said)


@pytest.mark.parametrize("option", ["--bus", "--bridge"])
def test_so_it_is_of_a_run(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{option} shows a secret" in shown(run, ["robot", option, "http://ann:passwd@robot"], capsys)


def test_nothing_is_said_while_a_shell_completes_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer()
    app.command()(ungrouped(look))
    line = ["--url", "http://ann:passwd@robot", "--token", "pass-word", "--bus", "zenoh://ann:passwd@/"]
    typer.main.get_command(app).make_context("look", line, resilient_parsing=True)
    assert capsys.readouterr().err == ""


def shown(command: object, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says on standard error."""
    app = typer.Typer()
    app.command()(ungrouped(command))  # type: ignore[arg-type]
    app(arguments, standalone_mode=False)
    return capsys.readouterr().err
