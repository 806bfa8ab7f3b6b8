"""What ``new`` makes works where nothing but the wheel is installed."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.helpers import NO_OTHER_PLUGINS

pytestmark = [
    pytest.mark.feature("K4"),
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed"),
]
_PACKAGE = Path(__file__).parents[2] / "dimos_streams"
_FROM_HERE = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation")

Run = Callable[..., str]


@pytest.fixture(scope="module")
def run(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs commands of a new virtual environment with the wheel in it, and with what this one has besides."""
    folder = tmp_path_factory.mktemp("venv")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], timeout=60, check=True)
    packages = next(venv.glob("lib/python*/site-packages"))
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environment |= {
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTEST_DEBUG_TEMPROOT": str(folder),  # other sessions clean up in the usual place
        "PYTEST_ADDOPTS": shlex.join(NO_OTHER_PLUGINS),
    }

    def execute(*command: str, cwd: Path, code: int = 0) -> str:
        if command[0] == "python":
            command = (str(venv / "bin" / "python"), *command[1:])
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    pip = (sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), "install", *_FROM_HERE)
    execute(*pip, "--no-compile", str(next(built.glob("*.whl"))), cwd=folder)
    _lend_compiled(packages / "dimos_streams")
    execute("dimos-streams", "new", "package", "demo", cwd=folder)
    execute(*pip, "--editable", "demo", cwd=folder)
    return execute


def _lend_compiled(installed: Path) -> None:
    """Lend the tree's bytecode to sources that are the same, which would be compiled once more otherwise."""
    for source in installed.rglob("*.py"):
        original = _PACKAGE / source.relative_to(installed)
        compiled, target = (Path(cache_from_source(str(path))) for path in (original, source))
        if compiled.exists() and original.read_bytes() == source.read_bytes():
            os.utime(source, ns=(original.stat().st_atime_ns, original.stat().st_mtime_ns))
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(compiled)


@pytest.fixture(scope="module")
def demo(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's directory."""
    where = run("python", "-c", "import demo; print(demo.__file__)", cwd=tmp_path_factory.mktemp("elsewhere"))
    return Path(where.strip()).parents[1]


def test_its_tests_pass_and_hold_what_it_did(run: Run, demo: Path) -> None:
    run("dimos-streams", "new", "robot", "rover", cwd=demo)
    said = run("python", "-m", "pytest", "-q", "--update-recordings", cwd=demo)
    assert "6 passed, 1 skipped" in said  # there was no recording yet
    assert "1 passed" in run("python", "-m", "pytest", "-q", "-k", "what_it_did", cwd=demo)


def test_its_blueprint_is_found_checked_and_run_from_anywhere(run: Run, demo: Path, tmp_path: Path) -> None:
    assert run("dimos-streams", "check", "demo", cwd=tmp_path) == "demo: ok, 10 modules\n"
    mission = ("--virtual-time", "--exit-when-done", "--seed", "7", "--say", "move 0.5")
    assert "completed: Moved 0." in run("dimos-streams", "run", "demo", *mission, cwd=tmp_path)
