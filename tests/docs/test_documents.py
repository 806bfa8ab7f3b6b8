"""Every command and code block of the README and of docs/ runs, in the order in which a reader meets them."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from dimos_streams.skill import skills_of
from tests import ports
from tests.cli.warm_commands import put_warm_command
from tests.helpers import NO_OTHER_PLUGINS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docker").glob("*.md"))]
LINKING = sorted({*DOCUMENTS, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")})
_BLOCK = re.compile(r"(?:<!-- (command|file): (\S+) -->\n)?```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_RUNNABLE = {"bash", "python"}
_SMALL = {"DIMOS_STREAMS__ROBOT__CAMERA_WIDTH": "160", "DIMOS_STREAMS__ROBOT__CAMERA_HEIGHT": "120"}
_ROBOTS = int(os.environ.get("DIMOS_STREAMS_FLEET_ROBOTS", "2"))
"""So many of the ten robots of the page about fleets run."""
_ALL_WITH_A_ROBOT = {
    ROOT / "README.md",
    ROOT / "docs" / "fleet.md",
    ROOT / "docs" / "foxglove.md",
    ROOT / "docs" / "http.md",
    ROOT / "docs" / "machines.md",
    ROOT / "docs" / "monitor.md",
}
"""Documents that run nothing without a camera; nobody looks at their pictures."""


@dataclass(frozen=True)
class Block:
    """One fenced block. ``role`` is ``file`` if it is to be saved, ``command`` if CI runs it by itself."""

    role: str
    name: str
    language: str
    text: str


def blocks(document: Path) -> list[Block]:
    return [Block(*match.groups(default="")) for match in _BLOCK.finditer(document.read_text())]


@pytest.fixture
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where shells find the command: a fork of a process that has imported what it imports, but for the README."""
    directory = tmp_path_factory.mktemp("bin")
    put_warm_command(directory, ROOT)
    return directory


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory, bus_url: str, free_port: int) -> Iterator[dict[str, str]]:
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LCM_DEFAULT_URL": bus_url,
        "DIMOS_STREAMS__BRIDGE__PORT": str(free_port),
        # Sessions that begin and end at once beside others of one root fail over what these remove there.
        "PYTEST_DEBUG_TEMPROOT": str(tmp_path_factory.mktemp("sessions")),
        "PYTEST_ADDOPTS": shlex.join(NO_OTHER_PLUGINS),
    }
    yield env
    if Path(env["DIMOS_STREAMS_STATE_DIR"]).exists():  # else nothing has run
        for _ in range(_ROBOTS):
            stopped = subprocess.run(["dimos-streams", "stop"], env=env, capture_output=True, timeout=30, check=False)
            if stopped.returncode:
                break


@pytest.fixture
def hub_port(tmp_path: Path) -> Iterator[int]:
    """A port for a hub, whose process is ended if the document has not come to its end."""
    yield ports.free_port()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((tmp_path / "hub.pid").read_text()), signal.SIGTERM)


@pytest.mark.live
@pytest.mark.timeout(180)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_document_runs(
    document: Path, environment: dict[str, str], hub_port: int, tmp_path: Path, commands: Path
) -> None:
    viewer_port = ports.free_port()
    environment |= _SMALL if document in _ALL_WITH_A_ROBOT else {}
    environment |= {} if document == ROOT / "README.md" else {"PATH": f"{commands}{os.pathsep}{environment['PATH']}"}
    for block in blocks(document):
        if block.role == "command" or (block.role != "file" and block.language not in _RUNNABLE):
            continue
        text = block.text.replace("127.0.0.1:7780", f"127.0.0.1:{environment['DIMOS_STREAMS__BRIDGE__PORT']}")
        text = text.replace("127.0.0.1:8765", f"127.0.0.1:{viewer_port}")
        text = text.replace("--foxglove -", f"--foxglove {viewer_port} -")
        text = text.replace("7790", str(hub_port)).replace("$(seq 10)", f"$(seq {_ROBOTS})")
        if block.role == "file":
            (tmp_path / block.name).write_text(text)
            continue
        command = (
            ["bash", "-euo", "pipefail", "-c", text] if block.language == "bash" else [sys.executable, "-c", text]
        )
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{text}\n--- printed ---\n{done.stdout}\n{done.stderr}"


def test_readme_has_both_commands_for_ci() -> None:
    commands = {block.name: block.text for block in blocks(ROOT / "README.md") if block.role == "command"}
    assert set(commands) == {"demo", "tests"}
    assert all(text.strip().count("\n") == 0 for text in commands.values())


def test_the_parameter_of_the_readmes_skill_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model knows nothing else of a skill, and authors begin with what they have read."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "dancer.py").write_text(next(b.text for b in blocks(ROOT / "README.md") if b.name == "dancer.py"))
    (dance,) = skills_of(import_module("dancer").Dancer).values()
    assert dance.description == "Wiggle on the spot."
    assert dance.info().parameters["properties"]["turns"]["description"] == "How often to change direction."


@pytest.mark.parametrize("document", LINKING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target
