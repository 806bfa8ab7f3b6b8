"""What a shell offers while somebody types; shells ask by variables of the environment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import typer
from pydantic import TypeAdapter

from dimos_streams.blueprint.settings import SettingRow
from dimos_streams.cli.bridge_client import connection
from dimos_streams.cli.bridge_client.completion import logged_processes, run_modules
from dimos_streams.cli.commands.of_runs.live import _live_settings
from dimos_streams.cli.system.completion import offering
from dimos_streams.runtime.registry import write
from tests.cli.machine import Machine
from tests.runtime.run_records import living_record, make_run, process_record

pytestmark = pytest.mark.live


def offered(machine: Machine, line: str) -> dict[str, str]:
    """The values that fish offers for the last word of a line, each with the words on it."""
    asking = {"_DIMOS_STREAMS_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = machine(**asking, _TYPER_COMPLETE_ARGS=f"dimos-streams {line}")
    assert done.err == ""
    lines = (each.partition("\t") for each in done.out.splitlines() if each)
    return {value: words for value, _, words in lines}


def test_where_nothing_runs_commands_and_blueprints_are_offered(machine: Machine) -> None:
    assert set(offered(machine, "re")) == {"reject", "release-robot", "recording", "replay", "restart", "resume"}
    assert "--virtual-time" in offered(machine, "run --vir")
    found = offered(machine, "check follow-person")
    assert found["follow-person-split"].startswith("A simulated robot on one computer")
    assert all(len(words) < 60 for words in found.values())
    for line in ("stop ", "restart ", "call ", "cancel ", "logs "):
        assert offered(machine, line) == {}, line


def test_what_runs_is_offered(rover: Machine) -> None:
    (run,) = offered(rover, "stop ")
    assert run.startswith("rover-")
    assert set(offered(rover, "logs ")) == {run}
    assert offered(rover, "restart ro") == {"rover": run}
    assert offered(rover, f"logs {run} --process ag") == {"agent": run}
    assert offered(rover, f"restart --run {run} ag") == {"agent": run}
    assert offered(rover, "call wan")["wander"].startswith("Wander about")
    assert offered(rover, "call --url http://127.0.0.1:9 wan") == {}, "nobody is there"
    (answered,) = rover("call", "wander", "--wait", "answer", "--json").json_lines[-1:]
    assert offered(rover, "cancel ") == {answered["call_id"]: "wander"}
    assert rover("cancel", answered["call_id"]).code == 0
    assert offered(rover, "follow ") == {}


def test_modules_and_processes_of_all_parts_of_a_blueprint_are_offered() -> None:
    for number, (machine, module) in enumerate((("jetson", "base"), ("laptop", "agent")), 1):
        run_dir = make_run(f"176400000000{number}-split-{number}", lives=True)
        for log in (module, "run"):
            (run_dir / "logs" / f"{log}.log").touch()
        row = SettingRow(module, "rate_hz", number, "default", True)
        (run_dir / "settings.json").write_bytes(TypeAdapter(list[SettingRow]).dump_json([row]))
        part = {"blueprint": "split", "machine": machine, "bridge_on": "jetson", "run_id": f"split-{number}"}
        write(living_record(run_dir).model_copy(update={**part, "processes": (process_record(module),)}))
    context = cast("typer.Context", SimpleNamespace(params={}))
    assert run_modules(context, "") == [("agent", "split-2"), ("base", "split-1")]
    assert logged_processes(context, "") == [("agent", "split-2"), ("run", "split-2"), ("base", "split-1")]
    assert _live_settings(context, "") == [("agent.rate_hz", "2"), ("base.rate_hz", "1")]


def test_settings_that_are_live_are_offered_of_a_run_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        SettingRow("gate", field, 0.5, "default", live) for field, live in (("max_speed", True), ("rate_hz", False))
    ]
    (tmp_path / "settings.json").write_bytes(TypeAdapter(list[SettingRow]).dump_json(rows))
    monkeypatch.setattr(connection, "living_runs", lambda name: [living_record(tmp_path)])

    def offer(**given: object) -> list[tuple[str, str]]:
        return _live_settings(cast("typer.Context", SimpleNamespace(params=given)), "gate.")

    assert offer() == offer(run="rover") == [("gate.max_speed", "0.5")]
    assert offer(url="http://127.0.0.1:7790") == offer(port=7790) == []


def test_a_shell_gets_nothing_to_evaluate() -> None:
    """Zsh evaluates values and words as they come, with escapes that a backslash undoes."""
    hostile = "Don't $(touch x) `touch y` \\\\$(z) \"; rm -rf ~ \n\x1b[2J\u202e it"
    names = ["move", "robot1/move", "$(touch x)", "a b", "a'b", "a;b", "`x`", "a\\b", "é", ""]
    source = offering(lambda context: [(name, hostile) for name in names])
    offered = source(cast("typer.Context", None), "")
    assert [value for value, _ in offered] == ["move", "robot1/move"]
    assert {words for _, words in offered} == {"Don t touch x touch y z rm -rf 2J it"}
