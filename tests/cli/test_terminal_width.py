"""Widths in which nobody could read anything."""

from __future__ import annotations

import itertools
import os
import re

import pytest

from dimos_streams.cli.entry import run_command
from dimos_streams.cli.system.terminal_width import widen


@pytest.mark.parametrize("given", ["0", "1", "²", "x", "-5", "99999999999999999999"])
@pytest.mark.parametrize("name", ["COLUMNS", "TERMINAL_WIDTH", "LINES"])
def test_help_is_written_whatever_the_environment_says_of_the_terminal(
    name: str, given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, given)
    assert run_command(["stop", "--help"]) == 0
    assert "--everywhere" in capsys.readouterr().out


def test_a_terminal_that_is_too_narrow_counts_as_one_of_the_usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback: os.terminal_size((1, 24)))
    widen()
    assert os.environ["COLUMNS"] == "80"


def test_a_width_that_can_be_read_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    widen()
    assert os.environ["COLUMNS"] == "20"


def test_help_is_wrapped_at_the_terminals_width_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No line of a paragraph ends early because its docstring's line does."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command(["say", "--help"]) == 0
    text = capsys.readouterr().out.partition("Arguments")[0]
    paragraphs = [paragraph.splitlines() for paragraph in re.split(r"\n\s*\n", text.strip())]
    assert len(paragraphs) > 3
    for line, following in itertools.chain.from_iterable(map(itertools.pairwise, paragraphs)):
        assert len(f" {line.strip()} {following.split()[0]} ") > 80, line
