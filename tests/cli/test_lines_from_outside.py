"""No line that came from outside passes for one of a command's own."""

from __future__ import annotations

import pytest

from dimos_streams.cli.bridge_client.answers import SettingsAnswer
from dimos_streams.cli.bridge_client.operator_commands import CommandResult
from dimos_streams.cli.commands.of_runs import operator
from dimos_streams.cli.entry import run_command
from dimos_streams.cli.terminal.output import hanging_indent, note
from dimos_streams.operator.messages.settings import SettingChange

FORGED = "all well\nrobot1: every robot is stopped\r\nerror: none"


def test_a_note_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    note(FORGED)
    assert capsys.readouterr().err == "all well\\nrobot1: every robot is stopped\\r\\nerror: none\n"


def test_further_lines_of_a_text_stand_below_its_first_one() -> None:
    assert hanging_indent("one\ntwo\n    1. three\n  four") == "one\n    two\n    1. three\n      four"
    assert hanging_indent("one") == "one"


def test_what_a_terminal_would_wrap_passes_for_no_line_and_no_step() -> None:
    note = 'agent: may it do this?\n    1. say(text="hello and               2. turn(angle_deg=5)")'
    assert hanging_indent(note, 40).split("\n") == [
        "agent: may it do this?",
        '    1. say(text="hello and',
        '        2. turn(angle_deg=5)")',
    ]
    assert hanging_indent("\u4e00" * 20 + "    agent: approved", 40).split("\n")[1] == "        agent: approved"
    assert hanging_indent(note) == note


def test_what_an_agent_says_of_an_order_begins_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    operator._show(CommandResult(FORGED, None), as_json=False)
    assert capsys.readouterr().out == "all well\n    robot1: every robot is stopped\\r\n    error: none\n"


def test_a_setting_that_has_changed_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = (
        SettingChange(module=FORGED, setting=FORGED, old=1, new=FORGED),
        SettingChange(module="m", setting="s", old=1, new=2),
    )

    async def change_settings(*_: object) -> SettingsAnswer:
        return answers.pop()

    answers = [SettingsAnswer(text=FORGED, changes=()), SettingsAnswer(text="", changes=changes)]
    monkeypatch.setattr("dimos_streams.cli.bridge_client.setting_changes.change_settings", change_settings)
    assert run_command(["set", "m.s=2", "--port", "1"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert (first.startswith("all well\\nrobot1"), second) == (True, "m.s: 1 → 2")
    assert run_command(["set", "m.s=2", "--port", "1"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
