"""A person at a terminal, through a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.machine import REPOSITORY, Machine

pytestmark = pytest.mark.live


class Terminal:
    """The person's end of a command's terminal."""

    def __init__(self, fd: int, process: subprocess.Popen[bytes]) -> None:
        self._fd = fd
        self._seen = ""
        self.process = process

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def read_until(self, pattern: str) -> str:
        """The output up to a text that matches; later calls go on behind it."""
        while not (match := re.search(pattern, self._seen)):
            try:
                data = os.read(self._fd, 65536)
            except OSError:  # the command has ended
                data = b""
            assert data, f"no {pattern!r} in {self._seen!r}"
            self._seen += data.decode(errors="replace")
        shown, self._seen = self._seen[: match.end()], self._seen[match.end() :]
        return shown


@contextmanager
def terminal(machine: Machine, *arguments: str, columns: int = 200) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    environment = machine.environment | {
        "COLUMNS": str(columns),
        "TERM": "xterm-256color",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "dimos_streams", *arguments],
        cwd=REPOSITORY,
        env=environment,
        preexec_fn=lambda: os.login_tty(theirs),  # so that Ctrl-C is a signal where a person's would be one
    ) as process:
        os.close(theirs)
        try:
            yield Terminal(ours, process)
        finally:
            if process.poll() is None:
                process.kill()
            os.close(ours)


def test_chat_at_a_prompt(rover: Machine) -> None:
    with terminal(rover, "chat") as chat:
        chat.read_until("you>")
        chat.type("move 0.3 m\r")
        chat.read_until("Moved 0.3 m fast")
        chat.type("\x03")
        chat.read_until("Ctrl-D ends the chat")
        chat.type("/quit\r")
        assert chat.process.wait(20) == 0
    assert "move 0.3 m" in (rover.state / "chat_history").read_text()


def test_chat_ends_with_ctrl_d(rover: Machine) -> None:
    with terminal(rover, "chat") as chat:
        chat.read_until("you>")
        chat.type("\x04")
        assert chat.process.wait(20) == 0


def test_progress_changes_in_place(rover: Machine) -> None:
    with terminal(rover, "call", "move", "--arg", "distance_m=0.4") as call:
        shown = call.read_until("Moved 0.4 m fast")
        assert call.process.wait(20) == 0
    assert "half of it" in shown
    assert "\x1b[2K" in shown.partition("half of it")[2]


def test_tables_stay_within_a_terminal_and_are_whole_for_programs(machine: Machine) -> None:
    with terminal(machine, "list", columns=80) as person:
        shown = person.read_until(r"robot-only .*\r\n").split("\r\n")
    assert 60 < max(map(len, shown)) <= 80
    assert max(map(len, machine("list", COLUMNS="80").out.splitlines())) > 100
