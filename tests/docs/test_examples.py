"""Every example prints what its README says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.warm_commands import put_warm_command
from tests.helpers import NO_OTHER_PLUGINS

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/README.md"))
LIVE = {"llm-over-http", "mcp-client"}
"""Examples that start processes."""
_BLOCK = re.compile(r"^```bash\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_CALM = """
from dimos_streams.clock import run_virtual
from dimos_streams.testing import ModuleHarness
from station import Watch
from weather.weather_msgs import Reading, Wind

async def watch():
    async with ModuleHarness(Watch) as harness:
        for winds in ([], [Wind(speed=3.0)], []):
            harness.feed("readings", Reading(winds=winds))
        print(await (await harness.call("strongest_wind")).result())

run_virtual(watch())
"""


@pytest.fixture
def environment(tmp_path: Path, bus_url: str) -> dict[str, str]:
    """Where shells find Python, and the command as a fork of a process that has imported what it imports."""
    commands = tmp_path / "bin"
    commands.mkdir()
    put_warm_command(commands, ROOT)
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "LCM_DEFAULT_URL": bus_url,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PYTEST_ADDOPTS": shlex.join(NO_OTHER_PLUGINS),
    }


def copied(folder: Path, port: str = "7780") -> Path:
    """The examples at another place, with the bridge at another port."""
    shutil.copytree(ROOT / "examples", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in folder.glob("*/*.*"):
        path.write_text(path.read_text().replace("127.0.0.1:7780", f"127.0.0.1:{port}"))
    return folder


def pattern(expected: str) -> str:
    """``…`` is any text within a line, or any number of lines where it stands alone. Runs of spaces are alike."""
    lines = [
        r"(?:[^\n]*\n)*?" if line == "…" else ".*".join(map(re.escape, re.split(r" *… *", line))) + "\n"
        for line in expected.splitlines()
    ]
    return re.sub(r"(?:\\ )+", r"\\s+", "".join(lines))


def check_example(folder: Path, environment: dict[str, str]) -> None:
    blocks = _BLOCK.findall((folder / "README.md").read_text())
    assert blocks
    for command, expected in blocks:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n--- printed ---\n{done.stdout}"
        assert re.fullmatch(pattern(expected), done.stdout), f"{expected}\n--- printed ---\n{done.stdout}"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - LIVE))
def test_an_example_prints_what_it_says(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    check_example(copied(tmp_path / "examples") / name, environment)


@pytest.mark.timeout(120)
def test_a_reading_without_winds_changes_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    folder = copied(tmp_path / "examples") / "own-messages"
    for command in (["dimos-streams", "messages", "generate", "weather"], [sys.executable, "-c", _CALM]):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "3.0 m/s\n"


@pytest.mark.live
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", sorted(LIVE))
def test_a_live_example_prints_what_it_says(
    name: str, environment: dict[str, str], free_port: int, tmp_path: Path
) -> None:
    folder = copied(tmp_path / "examples", str(free_port))
    environment |= {"DIMOS_STREAMS__BRIDGE__PORT": str(free_port)}
    try:
        check_example(folder / name, environment)
    finally:
        subprocess.run(["dimos-streams", "stop"], env=environment, capture_output=True, timeout=30, check=False)


def test_every_example_is_listed_and_short() -> None:
    listed = re.findall(r"^\| \[([\w-]+)\]\(", (ROOT / "examples" / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == EXAMPLES
    for path in sorted((ROOT / "examples").glob("*/*.*")):
        if path.name != "README.md":
            assert len(path.read_text().splitlines()) <= 65, path
