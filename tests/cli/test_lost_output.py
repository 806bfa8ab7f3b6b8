"""The standard output of a run that can't be written: the run goes on, and says so."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dimos_streams.cli.entry import run_command
from dimos_streams.cli.exit_codes import FAILED
from dimos_streams.cli.system import signals
from dimos_streams.cli.system.async_runner import run_async
from dimos_streams.cli.terminal import output
from dimos_streams.cli.terminal.screen import ScreenLine, TerminalScreen
from dimos_streams.errors import DimosStreamsError
from dimos_streams.recording.reader import LogReader
from dimos_streams.runtime.processes.output import LossyFile, lines_to
from tests.helpers import fill

LINE = ScreenLine(0.0, "run", "ready")
SAID = "error: standard output can't be written: No space left on device\n"


class _Failing:
    """A stream that can't be written."""

    def __init__(self, number: int, descriptor: int) -> None:
        self._descriptor = descriptor
        self._error = OSError(number, os.strerror(number))

    def write(self, text: str) -> None:
        raise self._error

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._descriptor

    def flush(self) -> None:
        """Nothing is left in it."""

    def close(self) -> None:
        """It has no buffer."""


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Has standard output fail with an error from now on."""
    monkeypatch.setattr(output, "_nowhere", io.StringIO)
    with open(os.devnull, "wb") as nowhere:
        yield lambda number: monkeypatch.setattr(sys, "stdout", _Failing(number, nowhere.fileno()))


@pytest.mark.parametrize("shown", [[], ["--json"]], ids=["text", "json"])
def test_a_run_goes_on_without_its_output_and_says_so_once(
    shown: list[str], tmp_path: Path, failing: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.lcmlog"
    failing(errno.ENOSPC)
    code = run_command(
        ["run", "tests/cli/rover.yaml", "--virtual-time", "--duration", "1", "--record", str(log), *shown]
    )
    assert (code, capsys.readouterr().err) == (FAILED, SAID)
    with LogReader(log) as written:
        times = [event.utime for event in written.events()]
    assert times[-1] - times[0] >= 900_000


def test_output_to_a_file_that_is_full_later_is_said_once(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    descriptor = os.open(small_disk / "out", os.O_WRONLY | os.O_CREAT)
    with output.outliving_output() as lost:
        monkeypatch.setattr(sys, "stdout", lines_to(LossyFile(descriptor, on_loss=lost.add)))
        output.write("one")
        fill(small_disk)
        for _ in range(2):
            output.write("x" * 10_000)
        assert lost.why == "No space left on device"
    monkeypatch.undo()
    os.close(descriptor)
    assert capsys.readouterr().err == SAID
    assert (small_disk / "out").read_text().startswith("one\n")


def test_other_commands_fail_and_a_reader_that_has_gone_ends_a_run(failing: Callable[[int], None]) -> None:
    failing(errno.ENOSPC)
    with pytest.raises(DimosStreamsError, match="standard output can't be written: No space left on device"):
        output.write("one")
    received: list[int] = []
    failing(errno.EPIPE)
    with signals.handle_with(received.append), output.outliving_output() as lost:
        output.write("one")
    assert (len(received), lost.why) == (1, "")


@contextmanager
def _closed_terminal(screen: TerminalScreen) -> Iterator[None]:
    """A block whose standard output is a terminal that was closed after a line had been shown on it."""
    window, terminal = os.openpty()
    with open(terminal, "w") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stdout", stream)
        screen.show(LINE)
        os.close(window)
        yield
        output.write("a summary")


def test_a_run_outlives_the_terminal_on_which_it_draws(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever logs out after `run … & disown` leaves a robot that goes on."""
    screen = TerminalScreen()
    with output.outliving_output() as lost, _closed_terminal(screen):
        screen.progress("a call", LINE)
        screen.show(LINE)
        screen.forget("a call", leave=True)
        screen.close()
    assert lost.why == "Input/output error"
    assert capsys.readouterr().err == "error: standard output can't be written: Input/output error\n"


def test_a_command_that_draws_on_a_closed_terminal_ends_with_the_reason_once() -> None:
    screen = TerminalScreen()
    with _closed_terminal(screen):
        with pytest.raises(DimosStreamsError, match=r"^standard output can't be written: Input/output error$"):
            screen.show(LINE)
        screen.close()


def test_a_command_ends_as_its_signal_says_though_its_terminal_is_gone() -> None:
    screen = TerminalScreen()

    async def show_the_end() -> None:
        signals.deliver(signal.SIGHUP)
        try:
            await asyncio.sleep(30.0)
        finally:
            screen.show(LINE)

    with _closed_terminal(screen):
        with pytest.raises(signals.Interrupted) as ended:
            run_async(show_the_end())
        screen.close()
    assert ended.value.exit_code == 128 + signal.SIGHUP


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_what_is_left_in_a_buffer_does_not_fail_again_where_the_stream_is_collected(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = open("/dev/full", "w")  # noqa: SIM115 -- that it is closed is what is looked at
    monkeypatch.setattr(sys, name, full)
    with output.outliving_output():
        (output.write if name == "stdout" else output.note)("one")
    getattr(sys, name).close()
    assert full.closed


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"], []])
def test_help_that_cannot_be_written_is_one_line_and_for_a_reader_that_has_gone_a_signal(
    words: list[str], failing: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(errno.ENOSPC)
    assert run_command(words) == FAILED
    assert capsys.readouterr().err == "error: output can't be written: No space left on device\n"
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        raise signals.Interrupted(number)

    failing(errno.EPIPE)
    with signals.handle_with(end):
        assert run_command(words) == 128 + signal.SIGPIPE
    assert received == [signal.SIGPIPE]
