"""Signals that end a command in order: how often somebody has to ask."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CoroutineType
from typing import Any

import pytest

from dimos_streams.cli.bridge_client import connection
from dimos_streams.cli.entry import run_command
from dimos_streams.cli.system import async_runner, signals
from dimos_streams.cli.system.async_runner import run_async
from dimos_streams.cli.terminal import log_files, output

_PIPE, _INT, _HUP, _TERM = signal.SIGPIPE, signal.SIGINT, signal.SIGHUP, signal.SIGTERM


@pytest.mark.parametrize(
    ("received", "hurries"),
    [
        ((_INT, _PIPE), 0),
        ((_PIPE, _INT), 0),
        ((_INT, _PIPE, _INT), 1),
        ((_INT, _INT, _PIPE), 1),
        ((_HUP, _HUP), 0),
        ((_TERM, _HUP), 0),
        ((_HUP, _INT, _INT), 1),
    ],
)
def test_only_who_asks_twice_is_in_a_hurry(received: tuple[signal.Signals, ...], hurries: int) -> None:
    """Ctrl-C in `run … | tee` ends tee, too: what is written then meets a broken pipe. A terminal that is closed
    sends one SIGHUP, and its shell another; the end of a login session sends SIGTERM and SIGHUP."""
    hurried: list[int] = []
    cleaned: list[str] = []

    async def main() -> None:
        for number in received[:1]:
            signals.deliver(number)
        try:
            await asyncio.Event().wait()
        finally:
            for number in received[1:]:
                signals.deliver(number)
            await asyncio.sleep(0)
            cleaned.append("in order")

    with pytest.raises(signals.Interrupted) as ended:
        run_async(main(), hurry=lambda: hurried.append(1))
    assert ended.value.exit_code == 128 + received[0]
    assert (len(hurried), cleaned) == (hurries, ["in order"])


@contextmanager
def _output_to(descriptor: int) -> Iterator[None]:
    with open(descriptor, "w") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield
        if sys.stdout is not stream:  # nobody reads it any more, and it was given up
            sys.stdout.close()


@pytest.mark.parametrize("says", [False, True], ids=["silent", "meets it in a line"])
def test_what_only_shows_ends_with_its_reader(says: bool) -> None:
    """`logs -f | grep -m1 ready` would wait for the next line of a robot that has nothing to say."""
    reader, written = os.pipe()
    cleaned: list[str] = []

    async def main() -> None:
        output.write("a line")
        os.close(reader)
        try:
            if says:
                output.write("one more")
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("in order")

    with _output_to(written), pytest.raises(signals.Interrupted) as ended:
        run_async(output.while_read(main()))
    assert ended.value.exit_code == 128 + _PIPE
    assert cleaned == ["in order"]


def test_what_does_something_ends_with_its_reader_only_where_it_writes() -> None:
    """`stop-robot | true` stops the robot."""
    reader, written = os.pipe()

    async def main() -> str:
        os.close(reader)
        await asyncio.sleep(0.01)
        return "done"

    with _output_to(written):
        assert run_async(main()) == "done"


@pytest.mark.parametrize("name", ["file", "fifo"])
def test_output_that_no_reader_can_leave_is_not_watched(name: str, tmp_path: Path) -> None:
    """In a FIFO that is open both ways a process would find what it has written itself."""
    os.mkfifo(tmp_path / "fifo")

    async def main() -> str:
        output.write("a line")
        await asyncio.sleep(0.01)
        return "done"

    with _output_to(os.open(tmp_path / name, os.O_RDWR | os.O_CREAT)):
        assert run_async(output.while_read(main())) == "done"


@pytest.mark.parametrize(
    "words",
    [
        ["logs", "-f"],
        ["monitor", "--url", "http://127.0.0.1:1"],
        ["follow", "c1", "--url", "http://127.0.0.1:1"],
        ["topics", "echo", "/odom", "--bus", "memq://"],
        ["topics", "rate", "/odom", "--bus", "memq://"],
    ],
    ids=" ".join,
)
def test_commands_that_only_show_what_goes_on(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run: list[str] = []

    def note_what(main: CoroutineType[Any, Any, Any]) -> None:
        run.append(main.__qualname__)
        inspect.getcoroutinelocals(main)["main"].close()
        main.close()
        raise signals.Interrupted(_INT)

    monkeypatch.setattr(log_files, "find_run_dir", lambda *_: tmp_path)
    monkeypatch.setattr(async_runner, "run_async", note_what)
    monkeypatch.setattr(connection, "at_bridge", lambda _, work: note_what(work(None)))
    assert run_command(words) == 128 + _INT
    assert run == [output.while_read.__qualname__]


_INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "dimos_streams.cli.exit_codes":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's `&` may have had ignored
sys.meta_path.insert(0, Interrupting())
from dimos_streams.cli import main
main()
"""


def test_ctrl_c_while_the_handler_itself_is_imported_shows_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_IMPORT], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
