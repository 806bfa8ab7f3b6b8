"""What can be mended is one line and an exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from dimos_streams.cli.app import create_app
from dimos_streams.runtime.registry import write
from dimos_streams.runtime.run_directories import keep_private
from tests.cli.machine import REPOSITORY, ROVER, Machine
from tests.runtime.run_records import living_record

CLASHING = "tests.cli.blueprints:clashing"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["frobnicate"], 2, "No such command 'frobnicate'"),
        (["run"], 2, "BLUEPRINT"),
        (["calls", "--opne"], 2, "--open"),
        (["say", "--run"], 2, "'--run' requires an argument (`dimos-streams say --help` says what it takes)"),
        (["--debug", "topics", "echo", "--bus"], 2, "(`dimos-streams topics echo --help` says"),
        (["run", "no-such-robot"], 2, "no blueprint is called 'no-such-robot'"),
        (["run", "no/such/file.yaml"], 2, "no/such/file.yaml"),
        (["run", "no_such.module:robot"], 2, "no_such"),
        (["run", ROVER, "--set", "rover.sped_m_s=3"], 2, "did you mean 'speed_m_s'?"),
        (["run", ROVER, "--exit-when-done"], 2, "--say"),
        (["run", ROVER, "--duration", "10s"], 2, "'--duration': it must be a number (given: '10s') ("),
        (["run", ROVER, "--port", "99999"], 2, "'--port': it must be at most 65535 (given: '99999') ("),
        (
            ["run", ROVER, "--record", "x.lcmlog", "--record-split", "inf"],
            2,
            "it must be at most 1000000 (given: 'inf')",
        ),
        (["recording", "report", "x.lcmlog", "-o", "x.html", "--max-mb", "inf"], 2, "at most 10000 (given: 'inf')"),
        (["messages", "java", "/etc/hostname"], 2, "/etc/hostname/"),
        (["run", ROVER, "--seed", "x"], 2, "'--seed': it must be a whole number (given: 'x') ("),
        (["graph", ROVER, "--format", "x"], 2, "'--format': 'x' is not one of 'text', 'mermaid', 'json' ("),
        (["run", ROVER, "--daemon", "--log-stdout"], 2, "--daemon leaves standard output at once"),
        (["run", ROVER, "--virtual-time", "--duration", "1", "--log-stdout"], 2, "--virtual-time has no processes"),
        (["run", ROVER, "--virtual-time"], 2, "--duration"),
        (["run", ROVER, "--seed", "-1"], 2, "--seed -1: it must be at least 0"),
        (["run", "base-robot", "--set", "robot.seed=-1"], 2, "seed: it must be at least 0 (given: -1)"),
        (["replay", "x.lcmlog", "--seed", "-1"], 2, "--seed -1: it must be at least 0"),
        (["run", ROVER, "--virtual-time", "--in-process", "--duration", "1"], 2, "--in-process"),
        (["run", ROVER, "--virtual-time", "--daemon", "--duration", "1"], 2, "--daemon"),
        (["run", ROVER, "--bus", "http://x"], 2, "bad bus URL 'http://x'"),
        (["run", "base-robot", "--say", "hello"], 2, "no bridge"),
        (["run", ROVER, "--set", "bridge.port=0", "--set", "bridge.host=192.0.2.77"], 2, "on host '192.0.2.77': "),
        (["skills", "--url", "http://127.0.0.1:9", "--port", "9"], 2, "--url and --port"),
        (["skills", "--url", "127.0.0.1:9"], 2, "bad bridge URL"),
        (["skills", "--port", "9"], 1, "no bridge answers at http://127.0.0.1:9 (connection refused)"),
        (["call", "move", "--port", "9"], 1, "no bridge answers"),
        (
            ["call", "move", "distance=1"],
            2,
            "argument(s) (distance=1); put --arg before it (`dimos-streams call --help`",
        ),
        (["reject", "a1", "too near"], 2, "(too near); a reason stands behind --reason (`dimos-streams reject --"),
        (
            ["say", "go", "to the", "door"],
            2,
            "(to the door); put the whole text in quotes (`dimos-streams say --help",
        ),
        (["run", ROVER, "--say", "go", "home"], 2, "(home); put the whole text in quotes (`dimos-streams run --help"),
        (["run", "base-robot", "patrol"], 2, "(patrol); give one blueprint (`dimos-streams run --help"),
        (["config", "base-robot", "patrol"], 2, "(patrol); give one blueprint (`dimos-streams config --help"),
        (
            ["call", "move", "3"],
            2,
            "(3); arguments are given as --arg NAME=VALUE: `dimos-streams skills move` lists them (`dimos-streams",
        ),
        (
            ["approve", "a1", "plate"],
            2,
            "(plate); arguments are given as --arg NAME=VALUE (`dimos-streams approve --",
        ),
        (["run", ROVER, "rover.speed_m_s=3"], 2, "(rover.speed_m_s=3); put --set before it"),
        (["set", "rt.speed", "1", "--port", "9"], 2, "'rt.speed' has no value; did you mean rt.speed=1?"),
        (["set", "rt.name", "a b", "--port", "9"], 2, "did you mean 'rt.name=a b'?"),
        (["set", "x", "--port", "9"], 2, "'x' is not of the form MODULE.SETTING=VALUE"),
        (["set", "x", "rt.speed=1", "--port", "9"], 2, "'x' is not of the form MODULE.SETTING=VALUE"),
        (["chat", "--port", "9"], 1, "no bridge answers"),
        (["stop"], 1, "no run lives"),
        (["stop", "--url", "http://127.0.0.1:9"], 2, "of the bridge that --machine or --everywhere asks"),
        (["stop", "--machine", "arm", "--port", "9"], 1, "no bridge answers at http://127.0.0.1:9"),
        (["logs", "--port", "9"], 2, "of the bridge that --machine asks"),
        (["logs", "--machine", "arm", "--port", "9"], 1, "no bridge answers at http://127.0.0.1:9"),
        (["restart", "bridge"], 1, "no run lives"),
        (["logs"], 1, "no runs yet"),
        (["missions"], 1, "no runs yet"),
        (["topics", "list", "--bus", "udpm://10.0.0.1:7667"], 2, "no multicast address"),
        (["topics", "list", "--bus", "udpm://239.255.76.67:0"], 2, "0 is no port"),
        (["doctor", "--bus", "memq://"], 2, "no bus between processes"),
        (["doctor", "--bus", ""], 2, "bad bus URL ''"),
        (["topics", "echo", "", "--count", "1"], 2, "TOPIC '' names none"),
        (["topics", "rate", " ", "--seconds", "1"], 2, "TOPIC ' ' names none"),
        (["topics", "echo", "/a\udcff"], 2, r"'/a\xff' is not valid UTF-8"),
        (["call", "move", "--arg", "note=\udcff\udcfe", "--port", "9"], 2, r"'note=\xff\xfe' is not valid UTF-8"),
        (["recording", "info", "\udcff.lcmlog"], 2, "No such file"),
        (["run", ROVER, "--record", ""], 2, "--record names no file: it is empty"),
    ],
)
def test_one_line(machine: Machine, arguments: list[str], code: int, words: str) -> None:
    result = machine(*arguments)
    assert result.code == code
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert words in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["status"], 0, "no run lives"),
        (["calls", "--port", "9"], 1, "error: no bridge answers"),
        (["list"], 2, "error: the working directory was deleted"),
        (["check", "x.yaml"], 2, "error: the working directory was deleted"),
        (["run", "base-robot"], 2, "error: the working directory was deleted"),
    ],
)
def test_commands_in_a_folder_that_was_deleted(
    machine: Machine, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    command = 'cd "$0" && rmdir "$0" && exec "$@"'
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["sh", "-c", command, str(tmp_path / "gone"), sys.executable, "-m", "dimos_streams", *arguments],
        capture_output=True,
        text=True,
        env=machine.environment | {"PYTHONPATH": str(REPOSITORY)},
        check=False,
        timeout=30,
    )
    assert done.returncode == code
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_every_problem_of_a_blueprint_has_its_line(machine: Machine) -> None:
    result = machine("run", ROVER, "--set", "rover.sped_m_s=3", "--set", "nobody.x=1")
    assert result.code == 2
    assert len(result.err.splitlines()) == 2


@pytest.mark.parametrize("how", [[], ["--in-process"], ["--virtual-time"], ["--daemon"]])
def test_a_blueprint_with_errors_is_not_run_in_any_way(machine: Machine, how: list[str]) -> None:
    checked, run = machine("check", CLASHING), machine("run", CLASHING, "--duration", "1", *how)
    *problems, verdict = checked.out.splitlines()
    assert problems, "both offer skills of the same names"
    assert verdict.startswith(f"{CLASHING}: ")
    warnings = [problem for problem in problems if " warning: " in problem]
    errors = [f"error: {problem}" for problem in problems if problem not in warnings]
    assert run.err.splitlines() == [*warnings, *errors]
    assert run.code == checked.code == 2


def test_debug_shows_the_traceback(machine: Machine) -> None:
    for result in (machine("--debug", "stop"), machine("stop", DIMOS_STREAMS_DEBUG="1")):
        assert "Traceback" in result.err
        assert result.code == 1


@pytest.mark.parametrize("command", ["check", "run"])
def test_debug_shows_the_traceback_of_code_that_can_t_be_imported(
    machine: Machine, tmp_path: Path, command: str
) -> None:
    (tmp_path / "broken.py").write_text("spoon = 1 / 0\n")
    (tmp_path / "broken.yaml").write_text("modules: {a: {type: 'broken:A'}}\n")
    result = machine("--debug", command, f"{tmp_path}/broken.yaml", PYTHONPATH=f"{tmp_path}:{REPOSITORY}")
    assert "    spoon = 1 / 0\n" in result.err


def test_version(machine: Machine) -> None:
    result = machine("--version")
    assert (result.code, result.err) == (0, "")
    assert result.out.strip()[0].isdigit()


@pytest.mark.parametrize("arguments", [[], ["topics"]])
def test_help_without_a_command(machine: Machine, arguments: list[str]) -> None:
    result = machine(*arguments)
    assert result.code == 2
    assert "Usage" in result.out + result.err


@pytest.mark.parametrize(
    "command",
    [
        *("run", "list", "check", "graph", "config", "status", "stop", "logs", "skills", "call", "cancel", "calls"),
        *("say", "chat", "topics", "doctor"),
    ],
)
def test_every_command_has_help(machine: Machine, command: str) -> None:
    result = machine(command, "--help")
    assert result.code == 0
    assert f"dimos-streams {command}" in result.out


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    """The modules of all commands are imported for the help."""
    heavy = {"pydantic", "requests", "numpy", "lcm", "prompt_toolkit", "ruamel", "fastapi", "mujoco", "openai"}
    heavy.add("zenoh")
    code = "import sys; from dimos_streams.cli.entry import create_app; create_app()"
    code += "; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True, timeout=30
    )
    assert heavy.isdisjoint(done.stdout.split())


@pytest.mark.parametrize("arguments", [["status", "--json"], ["--debug", "status"]])
def test_only_the_command_that_is_named_is_put_together(arguments: list[str]) -> None:
    assert [command.name for command in create_app(arguments).registered_commands] == ["status"]
    assert not create_app(arguments).registered_groups


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--help", "status"], ["statsu"]])
def test_all_commands_are_there_where_none_is_named(arguments: list[str]) -> None:
    app = create_app(arguments)
    assert len(app.registered_commands) > 20
    assert {"new", "topics", "messages", "recording", "hub"} == {group.name for group in app.registered_groups}


@pytest.mark.parametrize("arguments", [["--version"], ["--debug", "--version"]])
def test_no_command_is_put_together_for_the_version(arguments: list[str]) -> None:
    app = create_app(arguments)
    assert not app.registered_commands
    assert not app.registered_groups


def test_a_reader_that_leaves_ends_the_command_silently(machine: Machine) -> None:
    with machine.started("config", "base-robot") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(20) in (1, 141)


class _Stranger(BaseHTTPRequestHandler):
    """Answers every question with JSON that no bridge sends."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[1]")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def test_whoever_answers_in_a_bridges_place_is_no_bridge(machine: Machine) -> None:
    before = os.umask(0o022)
    with HTTPServer(("127.0.0.1", 0), _Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            keep_private()
            port = server.server_address[1]
            run_dir = machine.state / "runs" / "1-rover-1"
            run_dir.mkdir(parents=True)
            write(living_record(run_dir).model_copy(update={"port": port}))
            status = machine("status")
            others = [machine(*command.split()) for command in ("monitor", "pause", "skills", "calls", "call turn")]
        finally:
            os.umask(before)
            server.shutdown()
    why = f"what answers at http://127.0.0.1:{port} is no bridge: GET /"
    assert (status.code, status.err) == (0, "")
    assert f"http://127.0.0.1:{port} unreachable" in status.out
    assert why in status.out
    for result in others:
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1), result
        assert "is no bridge" in result.err or "is not a bridge" in result.err, result


@pytest.mark.parametrize(
    "command", [["check"], ["run", "--duration", "1"], ["run", "--duration", "1", "--virtual-time"]], ids="|".join
)
def test_a_level_of_logs_that_does_not_exist_is_refused_before_anything_starts(
    machine: Machine, command: list[str]
) -> None:
    result = machine(*command, ROVER, DIMOS_STREAMS_LOG_LEVEL="LOUD")
    text = "DIMOS_STREAMS_LOG_LEVEL is 'LOUD' in the environment; valid: DEBUG, INFO, WARNING, ERROR"
    assert (result.code, result.out, result.err) == (2, "", f"error: {text}\n")
    assert machine("check", ROVER, DIMOS_STREAMS_LOG_LEVEL="debug").code == 0


def test_a_token_that_can_be_read_on_its_way_is_said_once(machine: Machine) -> None:
    token = {"DIMOS_STREAMS_TOKEN": "a-token-of-mine"}
    over_the_network = machine("call", "turn", "--url", "http://0.0.0.0:9", **token)
    assert (
        over_the_network.err.count("the token goes to 0.0.0.0 unencrypted, and can be read on the way; https://") == 1
    )
    for url, given in (("http://127.0.0.1:9", token), ("http://0.0.0.0:9", {})):
        assert "unencrypted" not in machine("call", "turn", "--url", url, **given).err


def test_what_lies_in_the_working_directory_stands_for_nothing_of_pythons(tmp_path: Path) -> None:
    (tmp_path / "csv.py").write_text("raise SystemExit(9)\n")
    command = Path(sys.executable).with_name("dimos-streams")
    env = {**os.environ, "DIMOS_STREAMS_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run([command, "list"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["stop", "logs"])
def test_a_token_that_cannot_be_sent_is_refused_where_a_bridge_is_asked(machine: Machine, command: str) -> None:
    asking = machine(command, "--machine", "arm", "--port", "9", DIMOS_STREAMS_TOKEN="ends\n")
    assert (asking.code, "DIMOS_STREAMS_TOKEN ends with a line end" in asking.err) == (2, True)
    assert machine(command, DIMOS_STREAMS_TOKEN="ends\n").code == 1, "what asks no bridge needs no token"
