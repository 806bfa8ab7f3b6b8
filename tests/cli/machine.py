"""A user's shell: runs the real command, with a state directory, a bus and a bridge port of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.warm_commands import begin_warm, run_warm
from tests.ports import free_bus, free_port
from tests.warm_process import WarmProcess

REPOSITORY = Path(__file__).parents[2]
ROVER = "tests/cli/rover.yaml"
_MARK = "CLI_TEST_MARK"
_BOUND_S = 45.0
_KEPT = frozenset({"--virtual-time", "--record"})
"""What is recorded in virtual time is compared with what is played of it, or recorded once more: it must be the same,
whatever order Python gives to sets."""
_AT_THE_START = ("PYTHONIOENCODING", "PYTHONPATH", "PYTHONUTF8", "LC_ALL")
"""Python looks at them only then."""


@dataclass(frozen=True)
class Result:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON value."""
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        """Standard output as one JSON value a line."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Machine:
    """Commands of one machine see each other's runs."""

    state: Path
    bus: str = field(default_factory=free_bus)
    port: int = field(default_factory=free_port)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def environment(self) -> dict[str, str]:
        """For the command, and so for all processes that it starts."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DIMOS_STREAMS", "LCM_"))}
        own = {"DIMOS_STREAMS_STATE_DIR": str(self.state), "LCM_DEFAULT_URL": self.bus, _MARK: self.mark}
        return {**kept, **own, "COLUMNS": "200"}

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> Result:
        """Run a command to its end."""
        own = self.environment | environment
        if (
            "replay" in arguments
            or _KEPT.issubset(arguments)
            or any(own.get(name) != os.environ.get(name) for name in _AT_THE_START)
        ):
            return self.cold(*arguments, stdin=stdin, **environment)
        done = run_warm(arguments, stdin, own, REPOSITORY, self.mark, _BOUND_S)
        return Result(done.returncode, done.stdout, done.stderr)

    def cold(self, *arguments: str, stdin: str = "", **environment: str) -> Result:
        """The same, from Python's start: with an order of sets of its own."""
        done = subprocess.run(
            _command(arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_BOUND_S,
            cwd=REPOSITORY,
            env=self.environment | environment,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(
        self, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.STDOUT
    ) -> Iterator[subprocess.Popen[str]]:
        """A command while it runs, the leader of a process group as in a terminal. Killed at the end if need be."""
        with subprocess.Popen(
            _command(arguments),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=REPOSITORY,
            env=self.environment,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    @contextmanager
    def started_warm(
        self, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.STDOUT
    ) -> Iterator[WarmProcess]:
        """The same, as a fork of a process that has imported what it imports; for tests of what comes afterwards."""
        process = begin_warm(
            arguments, self.environment, REPOSITORY, self.mark, stdin=stdin, stderr=stderr, leads=True
        )
        with contextlib.closing(process):
            yield process

    def leaves_nothing(self) -> bool:
        """Whether all processes that commands of this machine have started end, within seconds."""
        for _ in range(100):
            if not self.processes():
                return True
            threading.Event().wait(0.05)
        raise AssertionError(f"still there: {self.processes()}")

    def end_all(self) -> None:
        """Kill what a test that has failed has left."""
        if self.state.exists():  # to look at all processes takes milliseconds
            for pid in self._left():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[str]:
        """The command lines of all processes that commands of this machine have left."""
        found = []
        for pid in self._left():
            with contextlib.suppress(OSError):  # it has ended since
                found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
        return found

    def _left(self) -> Iterator[int]:
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                if self.mark.encode() in (folder / "environ").read_bytes():
                    yield int(folder.name)
            except OSError:  # it ended while we looked, or is somebody else's
                continue


def read_until(process: subprocess.Popen[str] | WarmProcess, text: str) -> str:
    """The output up to the line that contains a text. Fails if it ends before."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError(f"no line has {text!r}:\n{''.join(lines)}")


def _command(arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "dimos_streams", *arguments]
