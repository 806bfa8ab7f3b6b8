"""What ``--json`` gives, as docs/command-line.md has it for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.cli.bridge_client.robot_orders import OrderResult
from dimos_streams.cli.commands.topics import _print_json
from dimos_streams.cli.entry import run_command
from dimos_streams.cli.system.bus_traffic import Traffic
from dimos_streams.cli.system.finding import Finding
from dimos_streams.hub.fleet_view import ListedRobot
from dimos_streams.messages.codec import encode
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.operator.messages.settings import SettingChange
from tests.recording.logs import START, write_log
from tests.recording.test_report import report

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
TABLE = PAGE.partition("## What `--json` gives")[2].partition("\n## ")[0]
ROWS = dict(re.findall(r"^\| (`[^|]+) \| ([^|]+) \|$", TABLE, re.M))


def fields(command: str) -> set[str]:
    """What the table lists for a command, with what may be in a field."""
    (row,) = (text for commands, text in ROWS.items() if f"`{command}`" in commands)
    return set(re.findall(r"`(\w+)`", row))


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    run_command([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_what_commands_without_a_run_give(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blueprint = tmp_path / "x.yaml"
    blueprint.write_text("modules:\n  walk: {type: 'tests.blueprint.toy_modules:Camera'}\n")
    broken = tmp_path / "broken.yaml"
    broken.write_text("modules: 1\n")
    log = write_log(tmp_path / "a.lcmlog", [(START, "POSE", b"x")])

    checked = shown(capsys, "check", str(broken))
    assert {*checked, *checked["problems"][0]} | {"error", "warning", "live"} == fields("check")
    assert {*shown(capsys, "config", str(blueprint))[0]} | {"set"} == fields("config")
    assert {*shown(capsys, "list")[0]} == fields("list")
    messages = shown(capsys, "messages", "list")
    assert {*messages, *messages["types"][0]} == fields("messages list")
    shape = shown(capsys, "messages", "show", "geometry_msgs.Twist")
    assert {*shape, *shape["fields"][0]} == fields("messages show")
    assert {*shown(capsys, "recording", "info", str(log))} == fields("recording info")


def test_what_other_commands_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert {*report().to_dict(), "null"} == fields("replay --modules")
    traffic = Traffic("/odom#nav_msgs.Odometry")
    traffic.add(10, 1.0)
    assert {*traffic.to_dict(1.0)} == fields("topics list") == fields("topics rate")
    for data in (encode(Twist()), b""):
        _print_json("/cmd_vel#geometry_msgs.Twist", data)
    whole, damaged = map(json.loads, capsys.readouterr().out.splitlines())
    assert {*whole, *damaged} == fields("topics echo")
    assert {*ListedRobot.model_fields, "null"} == fields("hub robots list")
    finding = Finding("python", "ok", "").to_dict()
    assert {*finding, "usable", "findings", "ok", "warning", "error"} == fields("doctor")
    assert {*SettingChange.model_fields, "text", "changes"} == fields("set")
    assert {*OrderResult("r", True, "", {}).to_dict()} == fields("stop-robot")
