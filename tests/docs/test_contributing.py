"""What CONTRIBUTING says can be done."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
TABLES = TEXT.partition("## Where do I change")[2].partition("\n## ")[0]
TASKS = [
    (task, where)
    for task, where in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", TABLES, re.M)
    if task != "to change or add"
]
_PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]+)`(?:, `(\w+)`)?")


def test_there_are_enough_tasks() -> None:
    assert len(TASKS) >= 50


@pytest.mark.parametrize(("task", "where"), TASKS, ids=[task for task, _ in TASKS])
def test_the_file_to_open_is_there(task: str, where: str) -> None:
    named = [match for match in _PATH.findall(where) if "PACKAGE" not in match[0]]
    assert named or "](docs/" in where
    for path, function in named:
        assert (ROOT / path).is_file(), path
        defined = rf"(def|class) {function}\(|^{function} = "
        assert not function or re.search(defined, (ROOT / path).read_text(), re.MULTILINE), function


@pytest.mark.parametrize(
    ("task", "example"),
    [
        ("a stop condition", "battery_below"),
        ("a line or column in `status`", "machines"),
        ("a kind of furniture", '"sideboard"'),
        ("a field of the heartbeat", "ModuleStatus"),
        ("a key of blueprint files", "delivery"),
        ("a bus", "zenoh"),
        ("the word, colour and sign of a call's state on the dashboard's page", "accent"),
        ("what the report of a recording shows", "ConversationLine"),
        ("what the monitor says of the run", "not_ending"),
        ("what is shown of a type of message, live", "CompressedImage"),
        ("a column of `dimos-streams calls`", "call_table"),
        ("a message of `WS /monitor`", "snapshot"),
        ("how the velocity gate limits motion", "max_turn"),
        ("an export format of recordings", "mcap"),
        ("a type of problem over HTTP", "problem"),
        ("an environment variable that names the bus", "DIMOS_STREAMS_BUS"),
    ],
)
def test_who_does_as_an_example_does_is_sent_to_all_its_places(task: str, example: str) -> None:
    named = [path for path, _ in _PATH.findall(dict(TASKS)[task])]
    assert len(named) >= 2
    assert [path for path in named if example not in (ROOT / path).read_text()] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")
def test_make_has_the_commands_that_are_named() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    offered = set(re.findall(r"^  make (\S+)", done.stdout, re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z][a-z-]*)[`\s]", TEXT)) - {"help"} <= offered
    assert {"setup", "check", "test", "test-fast", "docs", "bench"} <= offered


def test_hooks_run_what_the_check_runs() -> None:
    hooks = YAML(typ="safe").load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    check = (ROOT / ".ci" / "check").read_text()
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
    for hook in hooks:
        words = hook["entry"].replace(" --fix", "").replace(" --force-exclude", "").split()
        assert words[0] == "python" or any(re.match(rf"({words[0]}|import-linter)\b", tool) for tool in tools)
        assert hook["language"] == "system"
        assert " ".join(words) in check
