"""list, check, graph and config, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.machine import ROVER, Machine


def test_list(machine: Machine) -> None:
    rows = machine("list", "--json").json
    names = [row["name"] for row in rows]
    assert {"base-robot", "follow-person"} <= set(names)
    assert all(row["description"] for row in rows)
    table = machine("list")
    assert table.code == 0
    assert all(name in table.out for name in names)


def test_check(machine: Machine) -> None:
    good = machine("check", ROVER)
    assert (good.code, good.err) == (0, "")
    assert "ok, 3 modules" in good.out
    bad = machine("check", ROVER, "--set", "rover.speed_m_s=fast")
    assert bad.code == 2
    assert "speed_m_s" in bad.out


@pytest.mark.parametrize("settings", [[], ["--set", "rover.speed_m_s=fast"]])
def test_check_for_scripts(machine: Machine, settings: list[str]) -> None:
    result = machine("check", ROVER, *settings, "--json")
    assert result.json["ok"] is (not settings)
    assert len(result.json["problems"]) == len(settings) // 2
    assert result.code == (2 if settings else 0)


WRONG = """\
modules:
  rover: {{type: "tests.cli.modules:Rover", config: {{speed_m_s: fast}}}}
  bridge: {{type: "dimos_streams.bridge.module:Brige"}}
  agent: {{type: "dimos_streams.agent.module:Agnt"{more}}}
"""


@pytest.mark.parametrize("options", [[], ["--in-process", "--hub", "http://127.0.0.1:1"]])
def test_run_refuses_with_the_errors_of_check(machine: Machine, tmp_path: Path, options: list[str]) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG.format(more=', process: "P"'))
    settings = ["--set", "wheels.x=1", "--set", "agent.x=1"]
    said = machine("check", str(file), *settings).out.splitlines()
    assert said[-1] == f"{file}: 5 errors"
    ran = machine("run", str(file), *settings, *options)
    assert ran.code == 2
    assert ran.err.splitlines() == [f"error: {line}" for line in said[:-1]]


def test_a_part_of_a_run_is_refused_with_the_errors_of_all_parts_if_it_can_not_know_what_crosses(
    machine: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG.format(more="") + "machines: {one: [rover], two: [bridge, agent]}\n")
    said = machine("check", str(file)).out.splitlines()
    assert said[-1] == f"{file}: 3 errors"
    ran = machine("run", str(file), "--machine", "one")
    assert ran.err.splitlines() == [f"error: {line}" for line in said[:-1]]


def test_graph(machine: Machine) -> None:
    assert "rover" in machine("graph", ROVER).out
    assert machine("graph", ROVER, "--format", "mermaid").out.startswith("flowchart")
    assert {node["module"] for node in machine("graph", ROVER, "--format", "json").json["nodes"]} == {
        "rover",
        "bridge",
        "agent",
    }


def test_config_says_where_values_are_from(machine: Machine) -> None:
    result = machine("config", ROVER, "--set", "rover.speed_m_s=3", "--json", DIMOS_STREAMS__BRIDGE__PING_S="4")
    rows = {f"{row['module']}.{row['field']}": (row["value"], row["source"]) for row in result.json}
    assert rows["rover.speed_m_s"] == (3, "command line")
    assert rows["bridge.ping_s"] == (4, "environment DIMOS_STREAMS__BRIDGE__PING_S")
    assert rows["agent.model"] == ("offline", "default")
    table = machine("config", ROVER)
    assert "rover.speed_m_s" in table.out
