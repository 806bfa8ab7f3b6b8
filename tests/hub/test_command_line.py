"""The command line of a hub: what it takes, and what it says of what it can't."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.main import get_command

from dimos_streams.cli.bridge_client.connection.address import BridgeAddress
from dimos_streams.cli.bridge_client.setting_changes import change_settings
from dimos_streams.cli.commands.of_hubs.hub import create_app
from dimos_streams.cli.entry import run_command
from dimos_streams.errors import SkillError, UserError
from dimos_streams.hub.asking import BridgeRequest
from dimos_streams.hub.process import FleetHub
from dimos_streams.hub.settings import HubSettings
from dimos_streams.hub.storage.storage import HubStorage, open_engine
from tests.hub.serving import Robot, added, served_hub


def run(*words: str) -> int:
    return run_command(["hub", *words])


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[HubSettings]:
    """The settings with which a hub would serve, which it does not."""
    settings: list[HubSettings] = []

    async def serve(given: HubSettings) -> None:
        settings.append(given)

    monkeypatch.setattr("dimos_streams.cli.commands.of_hubs.hub._serve", serve)
    return settings


@pytest.mark.slow
def test_robots_are_added_listed_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = ["--database", f"sqlite:///{tmp_path}/hub.sqlite"]
    assert run("robots", "add", "r1", *database) == 0
    first = capsys.readouterr().out.strip()
    assert run("robots", "add", "r1", *database) == 2
    assert "robot 'r1' is known already; --new-token" in capsys.readouterr().err
    assert run("robots", "add", "r1", "--new-token", "--write", f"{tmp_path}/token", *database) == 0
    written = (tmp_path / "token").read_text()
    assert (written.startswith("dsr_"), written.strip() != first, (tmp_path / "token").stat().st_mode & 0o077) == (
        True,
        True,
        0,
    )
    assert capsys.readouterr().out == ""
    assert run("robots", "list", *database) == 0
    assert capsys.readouterr().out == "r1  never heard of  unknown\n"
    assert run("robots", "remove", "r2", *database) == 2
    assert "no robot of this fleet is called 'r2' (robots: r1)" in capsys.readouterr().err
    assert run("robots", "remove", "r1", *database) == 0
    assert run("migrate", *database) == 0
    assert capsys.readouterr().out == "schema 1, as before\n"


@pytest.mark.slow
def test_what_a_robot_says_of_itself_is_no_order_for_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        assert robot.report(hub, notes=["all \u202e \u009b2J well"]).status_code == 200
        for more in ([], ["--json"]):
            assert run("robots", "list", "--database", database, *more) == 0
            said = capsys.readouterr().out
            assert "all " in said
            assert said.replace("\n", "").isprintable(), said


def test_each_line_of_a_hubs_log_has_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert logging.lastResort is not None
    shown = logging.lastResort
    monkeypatch.setattr(shown, "formatter", None)
    lines = []

    async def start(hub: FleetHub) -> None:
        lines.append(shown.format(logging.makeLogRecord({"name": "hub", "levelname": "WARNING", "msg": "away"})))
        raise UserError("that is all")

    monkeypatch.setattr(FleetHub, "start", start)
    assert run("--database", f"sqlite:///{tmp_path}/hub.sqlite") == 2
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}[+-]\d{4} WARNING hub: away", "".join(lines))


@pytest.mark.slow
def test_a_token_ends_only_for_one_that_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/hub.sqlite"
    assert run("robots", "add", "r1", "--database", url) == 0
    token = capsys.readouterr().out.strip()
    file = tmp_path / "token"
    for path, why in ((tmp_path, "File exists"), (tmp_path / "none" / "token", "No such file or directory")):
        assert run("robots", "add", "r1", "--new-token", "--write", f"{path}", "--database", url) == 2
        assert f"--write {path}: the token can't be written there: {why}" in capsys.readouterr().err
        assert run("robots", "add", "r2", "--write", f"{path}", "--database", url) == 2
    assert run("robots", "add", "r1", "--write", f"{file}", "--database", url) == 2
    assert not file.exists(), "r1 is known already"
    for words in (["add", "r1", "--new-token"], ["list"]):
        command = [sys.executable, "-m", "dimos_streams", "hub", "robots", *words, "--database", url]
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=30)
        assert done.returncode == 1
        assert done.stderr.endswith("error: standard output can't be written: No space left on device\n")
    storage = HubStorage(open_engine(url))
    try:
        assert (storage.robots.of_token(token), [row.name for row in storage.robots.all()]) == ("r1", ["r1"])
        assert run("robots", "add", "r1", "--new-token", "--write", f"{file}", "--database", url) == 0
        assert (storage.robots.of_token(token), storage.robots.of_token(file.read_text().strip())) == ("", "r1")
    finally:
        storage.close()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ["robots", "add", "a b"],
            "'a b' is no name for a robot; valid: up to 63 letters, digits, - and _, a letter or digit first",
        ),
        (["--database", "mysql://x"], "--database 'mysql' is of no kind that a hub knows; valid: sqlite:///FILE"),
        (["--database", "sqlite:////proc/x/hub.sqlite"], "the hub's database /proc/x/hub.sqlite can't be used"),
        (["--host", "0.0.0.0"], "needs a token for operators: set --token-file or DIMOS_STREAMS_TOKEN"),
        (["--token-file", "/nowhere"], "--token-file /nowhere: No such file"),
        (["--connections", "100000"], "needs 100256 open files"),
        (["--keep-days", "inf"], "a hub can't keep events for inf days; valid are at most 36500"),
        (["--keep-days", "nan"], "Invalid value for '--keep-days': it must be at least 0.001 (given: 'nan')"),
        (["--keep-days", "1e300"], "a hub can't keep events for 1e+300 days; valid are at most 36500"),
        (
            ["--database", "sqlite:///x.sqlite", "robots", "add", "r1"],
            "--database is before `robots`, which would not",
        ),
        (["migrate"], "--port is before `migrate`, which would not heed it"),
    ],
)
def test_what_a_hub_can_not_use_is_told_in_a_line(
    words: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    monkeypatch.delenv("DIMOS_STREAMS_TOKEN", raising=False)
    assert run(*(words if words[0] == "robots" else ["--port", "0", *words])) == 2
    said = capsys.readouterr()
    assert (why in said.err, said.err.count("\n"), said.out) == (True, 1, "")


def test_options_of_a_hub_speak_of_no_bridge() -> None:
    serving = get_command(create_app())
    texts = {option.name: str(getattr(option, "help", "")) for option in serving.params}
    assert texts["token"].startswith("The operators' token")
    assert [name for name, text in texts.items() if "bridge" in text] == []


def test_of_two_tokens_for_operators_none_is_taken_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--port", "0", "--token-file", "/nowhere", "--token", "opens-all-of-it") == 2
    assert "--token is the operators' token, and so is what is in --token-file /nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--token", "typed-by-hand"], ["--token-file", "operators.token"]])
def test_the_operators_token_is_what_is_typed_or_in_the_file_or_else_in_the_environment(
    words: list[str], served: list[HubSettings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DIMOS_STREAMS_TOKEN", "of-the-environment")
    (tmp_path / "operators.token").touch(0o600)
    (tmp_path / "operators.token").write_text("of-a-file\n")
    assert run(*words) == 0
    token = {"": "of-the-environment", "--token": "typed-by-hand", "--token-file": "of-a-file"}
    assert [settings.token for settings in served] == [token[words[0] if words else ""]]


def test_an_empty_token_in_the_environment_is_no_hub_without_one(
    served: list[HubSettings], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_TOKEN", "")
    assert (run(), served) == (2, [])
    assert "DIMOS_STREAMS_TOKEN is empty" in capsys.readouterr().err


def test_an_old_or_damaged_database_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hub.sqlite"
    database = ["--database", f"sqlite:///{path}"]
    assert run("migrate", *database) == 0
    with sqlite3.connect(path) as db:
        db.execute("UPDATE fleet SET schema_version = 9")
    db.close()
    assert run("--port", "0", *database) == 2
    assert "has schema 9, and this hub (version" in capsys.readouterr().err
    path.write_bytes(b"no database" * 1000)
    assert run("--port", "0", *database) == 2
    assert capsys.readouterr().err == f"error: the hub's database {path} can't be used: file is not a database\n"


@pytest.mark.parametrize(
    ("words", "name", "why"),
    [
        (["robots", "list"], "typo.sqlite", "there is no hub's database typo.sqlite; `dimos-streams hub` makes one"),
        (["robots", "remove", "r1"], "typo.sqlite", "there is no hub's database typo.sqlite"),
        (
            ["--port", "0"],
            "nodir/x.sqlite",
            "the hub's database nodir/x.sqlite can't be used: there is no directory /",
        ),
        (["robots", "add", "r1"], "nodir/x.sqlite", "/nodir"),
        (["--port", "0"], "robot.yaml", "the hub's database robot.yaml can't be used: file is not a database"),
        (["robots", "list"], "robot.yaml", "the hub's database robot.yaml can't be used: file is not a database"),
        (["migrate"], "robot.yaml", "the hub's database robot.yaml can't be used: file is not a database"),
        (["--port", "0"], "other.db", "other.db has tables of another program; give the hub one of its own"),
        (["robots", "list"], "other.db", "other.db has tables of another program; give the hub one of its own"),
        (["robots", "add", "r1"], "other.db", "other.db has tables of another program"),
        (["migrate"], "other.db", "other.db has tables of another program"),
        (["--port", "0"], ".", "the hub's database . can't be used: it is a directory"),
        (["robots", "add", "r1"], ".", "it is a directory"),
    ],
)
def test_a_database_that_is_no_hub_s_is_refused_and_nothing_is_made_or_changed(
    words: list[str],
    name: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.yaml").write_text("name: robot\n")
    with sqlite3.connect("other.db") as db:
        db.execute("CREATE TABLE fleet (car text)")
    db.close()
    for path in tmp_path.iterdir():
        path.chmod(0o644)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(*words, "--database", f"sqlite:///{name}") == 2
    assert why in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o644}


def test_set_waits_until_a_hub_has_said_which_robot_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it blames the hub, which is well."""
    waited: dict[str, float] = {}

    async def post(bridge: BridgeAddress, path: str, *given: object, timeout_s: float) -> object:
        waited[path] = timeout_s
        raise SkillError("no such path" if path == "/settings" else "robot 'r1' has not answered")

    async def get(bridge: BridgeAddress, *given: object) -> object:
        return SimpleNamespace(is_hub=True)

    monkeypatch.setattr(BridgeAddress, "post", post)
    monkeypatch.setattr(BridgeAddress, "get", get)
    with pytest.raises(SkillError, match="'r1' has not answered"):
        asyncio.run(change_settings(BridgeAddress("http://hub"), ["r1/follow.distance_m=1"]))
    assert waited["/robots/r1/settings"] > BridgeRequest("r1", "POST", "/settings").within_s
