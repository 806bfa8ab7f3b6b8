"""Wheel and sdist hold all of the package, and nothing else becomes importable."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from dimos_streams import __version__

ROOT = Path(__file__).parents[2]
LINKED = {
    "skills": "dimos_streams/skills",
    "blueprints": "dimos_streams/blueprints",
    "lcm_types": "dimos_streams/lcm_types",
}
SHIPPED = {".py", ".pyi", ".yaml", ".lcm", ".xml", ".html", ".css", ".js"}

LAYOUT = "dimos_streams/foxglove/layout.json"
PAGE = "dimos_streams/dashboard/page"
"""All of it is shipped: the libraries in it with their licences."""


def sources() -> list[str]:
    """The files of the package, where they are in the repository."""
    found = []
    for top in ("dimos_streams", *LINKED):
        for path in (ROOT / top).rglob("*"):
            relative = path.relative_to(ROOT).as_posix()
            through_link = any(relative.startswith(f"{link}/") for link in LINKED.values())
            shipped = path.suffix in SHIPPED or path.name.endswith("-tpl") or path.name == "py.typed"
            shipped = shipped or relative.startswith(f"{PAGE}/") or relative == LAYOUT
            if path.is_file() and shipped and not through_link:
                found.append(relative)
    return found


def tree() -> set[str]:
    """The files of the package as they should be in site-packages."""
    return {path if path.startswith("dimos_streams/") else f"dimos_streams/{path}" for path in sources()}


@pytest.mark.timeout(180)
@pytest.mark.slow
def test_wheel_is_the_tree(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        metadata = next(name for name in wheel.namelist() if name.endswith("top_level.txt"))
        assert wheel.read(metadata).decode().split() == ["dimos_streams"]
    assert names == tree()


@pytest.mark.timeout(180)
@pytest.mark.slow
def test_sdist_has_what_a_contributor_needs(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    needed = {"LICENSE", "README.md", "pyproject.toml", "tests/conftest.py", "skills/follow_person.py"}
    needed |= {f"{PAGE}/index.html", f"{PAGE}/vendor/preact/LICENSE"}
    assert needed <= names
    assert "lcm_types/dimos_streams/ToolStreamEvent.lcm" in names
    assert not any("__pycache__" in name for name in names)


@pytest.mark.timeout(180)
@pytest.mark.slow
def test_the_version_stands_in_one_place(built: Path) -> None:
    wheel = next(built.glob("*.whl"))
    assert wheel.name.split("-")[1] == __version__
    stated = [
        path.relative_to(ROOT).as_posix()
        for path in sorted([ROOT / "pyproject.toml", *(ROOT / "dimos_streams").rglob("*.py")])
        if f'"{__version__}"' in path.read_text()
    ]
    assert stated == ["dimos_streams/__init__.py"]


def test_the_newest_changes_are_of_this_version() -> None:
    newest = re.search(r"^## \[(.+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__


@pytest.mark.parametrize("name", sorted(LINKED))
def test_top_level_folders_refuse_to_be_imported(name: str) -> None:
    command = [sys.executable, "-c", f"import {name}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert f"dimos_streams.{name}" in done.stderr.splitlines()[-1]
