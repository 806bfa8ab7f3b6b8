"""What modules, callers and files say reaches terminals and logs as text, in every command."""

from __future__ import annotations

import sys
import threading
import unicodedata
from pathlib import Path

import pytest

from dimos_streams.cli.entry import run_command
from dimos_streams.common.process.own_code import DEBUG
from dimos_streams.errors import DimosStreamsError
from tests.cli.blueprints import NASTY
from tests.cli.machine import Machine, Result

BLUEPRINT = "tests.cli.blueprints:nasty"


def check(result: Result) -> None:
    for output in (result.out, result.err):
        obeyed = {char for char in output if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") and char != "\n"}
        assert not obeyed, (obeyed, output)
        assert not [line for line in output.split("\n") if line.startswith(("2026-01-01", "end"))], output


@pytest.mark.live
@pytest.mark.feature("F6")
def test_no_command_passes_on_what_a_terminal_would_obey(machine: Machine, tmp_path: Path) -> None:
    log = tmp_path / "nasty.lcmlog"
    check(machine("run", BLUEPRINT, "--daemon", "--port", str(machine.port), "--record", str(log)))
    shown = [
        machine("call", "babble", "--arg", f"text={NASTY.replace(chr(0), '')}", "--wait", "close"),
        machine("call", "stumble", "--wait", "close"),
        machine("call", "babble", "--arg", f"{NASTY[:5]}=1"),
        machine("say", NASTY.replace("\0", "")),
        machine("say", "babble"),
        *(
            machine(*command.split())
            for command in ("skills", "skills babble", "calls", "status", "logs", "missions", "topics list")
        ),
        *(machine(command, "--json") for command in ("skills", "calls")),
        machine("topics", "echo", "/position", "--count", "1"),
        machine("check", NASTY.replace("\0", "")),
        machine("check", BLUEPRINT),
        machine("stop"),
        machine("recording", "info", str(log)),
        machine("recording", "report", str(log), "-o", str(tmp_path / "report.html")),
        machine("run", BLUEPRINT, "--virtual-time", "--say", "babble", "--duration", "2"),
    ]
    for result in shown:
        check(result)
    reported = "".join(result.out + result.err for result in shown)
    assert reported.count("\\x1b[2J\\x07\\x9b31m\\u202e\\u2028evil") > 8
    written = (tmp_path / "report.html").read_text()
    assert {char for char in written if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")} <= {"\n", "\r"}
    logs = [path.read_text() for path in machine.state.glob("runs/*/logs/nasty.log")]
    assert "forged" in "".join(logs)
    for text in logs:
        check(Result(0, text, ""))


def test_a_commands_traceback_shows_no_password_and_nothing_that_a_terminal_would_obey(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setenv(DEBUG, "1")
    with pytest.raises(DimosStreamsError) as raised:
        run_command(["skills", "--url", "http://ann:pa55word@127.0.0.1:9"])
    sys.excepthook(raised.type, raised.value, raised.tb)
    shown = capsys.readouterr().err
    check(Result(1, "", shown))
    assert "Traceback" in shown
    assert "http://[redacted]@127.0.0.1:9" in shown
    assert "pa55word" not in shown
