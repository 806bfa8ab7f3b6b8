"""``new``: which names it takes, where the files go, and that it never leaves half of them or overwrites unasked."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.cli.entry import run_command
from dimos_streams.cli.scaffold.names import MAX_LENGTH, check_import
from dimos_streams.errors import UserError

pytestmark = [pytest.mark.feature("K4"), pytest.mark.usefixtures("here")]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        if any(
            str(place).startswith(str(tmp_path))
            for place in [getattr(module, "__file__", ""), *getattr(module, "__path__", ())]
        ):
            del sys.modules[name]


def new(*arguments: str) -> None:
    assert run_command(["new", *arguments]) == 0


def tree(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_package_has_all_that_it_needs(here: Path) -> None:
    new("package", "demo")
    assert set(tree(here / "demo")) == {
        ".github/workflows/ci.yaml",
        ".gitignore",
        "AGENTS.md",
        "README.md",
        "demo/__init__.py",
        "demo/demo.yaml",
        "demo/greet.py",
        "demo/py.typed",
        "demo/scene.yaml",
        "pyproject.toml",
        "tests/test_greet.py",
    }


@pytest.mark.parametrize("layout", ["", "src/"])
def test_a_module_goes_into_the_package_that_one_stands_in(layout: str, here: Path) -> None:
    (here / "pyproject.toml").write_text('[project]\nname = "Acme-Robots"\n')
    package = here / f"{layout}acme_robots"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    before = set(tree(here))
    new("skill", "wave", "--dir", str(package))
    inside = f"{layout}acme_robots"
    assert set(tree(here)) - before == {f"{inside}/wave.py", f"{inside}/wave.yaml", "tests/test_wave.py"}
    assert "type: acme_robots.wave:Wave" in (package / "wave.yaml").read_text()
    assert f'HERE / "../{inside}/wave.yaml"' in (here / "tests/test_wave.py").read_text()


def test_a_module_in_a_checkout_of_the_library_stands_alone(here: Path) -> None:
    (here / "pyproject.toml").write_text('[project]\nname = "dimos-streams"\n')
    library = here / "dimos_streams"
    library.mkdir()
    (library / "__init__.py").touch()
    before = set(tree(here))
    (here / "mine").mkdir()
    new("skill", "strew", "--dir", "mine")
    new("robot", "crawler")
    robot = {"crawler.py", "crawler.yaml", "test_crawler.py"}
    assert set(tree(here)) - before == {"mine/strew.py", "mine/strew.yaml", "mine/test_strew.py", *robot}
    assert run_command(["new", "package", "demo", "--dir", "dimos_streams"]) == 2


def test_a_skill_in_a_package_joins_the_packages_own_robot(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new("package", "orchard")
    new("skill", "wave", "--dir", "orchard")  # from where Python does not find the package
    blueprint = (here / "orchard/orchard/wave.yaml").read_text()
    assert "include: [orchard.yaml]" in blueprint
    assert "description: The robot of orchard with the skills of Wave" in blueprint
    monkeypatch.chdir("orchard")
    monkeypatch.syspath_prepend(Path.cwd())
    sys.modules.pop("orchard", None)  # the directory around it, which was one
    assert run_command(["check", "orchard/wave.yaml"]) == 0
    assert run_command(["new", "skill", "go_and_greet"]) == 2
    assert "the robot of orchard has the skill 'go_and_greet' of module 'greet'" in capsys.readouterr().err


def test_a_projects_name_that_is_a_path_leads_nowhere(here: Path) -> None:
    (here / "pyproject.toml").write_text('[project]\nname = "code/inner"\n')
    (here / "code/inner").mkdir(parents=True)
    (here / "code/inner/__init__.py").touch()
    new("skill", "wave_twice")
    assert (here / "wave_twice.py").is_file()


@pytest.mark.parametrize("kind", ["skill", "robot"])
@pytest.mark.parametrize("project", ["", '[project]\nname = "elsewhere"\n', "[tool.ruff]\n"])
def test_elsewhere_its_files_stand_alone(
    kind: str, project: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if project:
        (here / "pyproject.toml").write_text(project)
    new(kind, "wave_twice")
    assert {"wave_twice.py", "wave_twice.yaml", "test_wave_twice.py"} <= set(tree(here))
    assert "class WaveTwice(Module)" in (here / "wave_twice.py").read_text()
    assert run_command(["check", "wave_twice.yaml"]) == 0
    assert "pytest test_wave_twice.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "name", "why"),
    [
        ("package", "MyRobot", "'my_robot' would do"),
        ("package", "my-robot", "'my_robot' would do"),
        ("package", "2bots", "'bots' would do"),
        ("package", "demo.robot", "'demo_robot' would do"),
        ("package", "../demo", "'demo' would do"),
        ("package", "_", "begins with a letter"),
        ("package", "", "begins with a letter"),
        ("package", "größe", "small letters"),
        ("package", "a" * (MAX_LENGTH + 1), f"at most {MAX_LENGTH} characters"),
        ("package", "class", "a word of Python's; 'my_class' would do"),
        ("package", "json", "Python has a module of this name; 'my_json' would do"),
        ("package", "numpy", "numpy/__init__.py is imported by this name; 'my_numpy' would do"),
        ("package", "tests", "tests have this name"),
        ("package", "patrol", "a stock blueprint has this name"),
        ("skill", "json", "Python has a module of this name"),
        ("skill", "move", "the stock robot has the skill 'move' of module 'drive'; 'my_move' would do"),
        ("skill", "drive", "the stock robot has the module 'drive'"),
        ("skill", "start", "modules have or use 'start' themselves"),
        ("skill", "times", "modules have or use 'times' themselves"),
        ("skill", "metres", "its class would be 'Metres', which modules use themselves"),
        ("robot", "odometry", "its class would be 'Odometry'"),
    ],
)
def test_a_name_that_would_not_work_is_refused(
    kind: str, name: str, why: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["new", kind, name]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: a {kind} can't be called {name!r}: ")
    assert why in error
    assert tree(here) == {}


def test_a_name_of_the_environment_is_refused_also_where_that_lies_in_the_folder() -> None:
    with pytest.raises(UserError, match=r"numpy/__init__\.py is imported by this name"):
        check_import("package", "numpy", Path(sys.prefix).parent)


def test_no_package_is_made_among_the_code_of_another_one(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    new("package", "demo")
    made = tree(here)
    capsys.readouterr()
    assert run_command(["new", "package", "demo", "--dir", "demo", "--force"]) == 2
    assert capsys.readouterr().err.startswith("error: 'demo' is inside the package demo: `new skill` and `new robot`")
    for place, name in (("demo", "demo"), ("demo/demo", "demo"), ("demo/demo", "other")):
        monkeypatch.chdir(here / place)
        assert run_command(["new", "package", name]) == 2
        assert capsys.readouterr().err.startswith("error: you are inside the package demo: `new skill` and `new rob")
    assert tree(here) == made
    monkeypatch.chdir(here / "demo")
    new("package", "other")  # beside its code


def test_what_is_there_is_not_overwritten_unasked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new("package", "demo")
    (here / "demo/README.md").write_text("mine")
    (here / "demo/AGENTS.md").unlink()
    before = tree(here)
    assert run_command(["new", "package", "demo"]) == 2
    error = capsys.readouterr().err
    assert "demo/README.md" in error
    assert "demo/AGENTS.md" not in error
    assert tree(here) == before
    new("package", "demo", "--force")
    out = capsys.readouterr().out
    assert "overwritten: demo/README.md" in out
    assert "written: demo/AGENTS.md" in out.splitlines()
    assert (here / "demo/README.md").read_text() != "mine"


@pytest.mark.parametrize("path", ["demo", "demo/tests", "demo/README.md/inside"])
def test_nothing_is_made_where_something_else_is_in_the_way(
    path: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file where a directory would be, or a directory where a file would be; --force does not help."""
    (here / path).parent.mkdir(parents=True, exist_ok=True)
    (here / path).touch()
    before = tree(here)
    assert run_command(["new", "package", "demo", "--force"]) == 2
    assert re.search(r"error: demo/\S+ can't be made: ", capsys.readouterr().err)
    assert tree(here) == before


def test_a_dry_run_lists_what_would_be_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "demo").mkdir()
    (here / "demo/README.md").touch()
    new("package", "demo", "--dry-run", "--force")
    listed = capsys.readouterr().out
    assert tree(here) == {"demo/README.md": ""}
    assert "would overwrite: demo/README.md" in listed
    new("package", "demo", "--force")
    done = capsys.readouterr().out
    assert listed.replace("would overwrite", "overwritten").replace("would write", "written") == done


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("moves", [0, 1, 7, 14])
def test_what_fails_in_the_middle_leaves_all_as_it_was(
    force: bool, moves: int, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if force:
        new("package", "demo")
        (here / "demo/README.md").write_text("mine")
    elif moves > 10:
        return
    before, folders = tree(here), sorted(here.rglob("*"))
    left, replace = [moves], os.replace

    def failing(source: Any, target: Any) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise OSError(28, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    assert run_command(["new", "package", "demo", "--force"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert tree(here) == before
    assert sorted(here.rglob("*")) == folders


def test_a_full_disk_is_an_error_that_names_the_file(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Path.write_text

    def full(self: Path, *args: Any, **named: Any) -> int:
        if self.name == "1.new":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, *args, **named)

    monkeypatch.setattr(Path, "write_text", full)
    assert run_command(["new", "package", "demo"]) == 1
    assert re.search(
        r"error: nothing was made: demo/\S+ can't be written: No space left on device", capsys.readouterr().err
    )
    assert list(here.iterdir()) == []


def test_a_directory_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["new", "skill", "wave", "--dir", "nowhere"]) == 2
    assert "--dir nowhere: there is no such directory" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed")
def test_what_is_made_is_formatted_whatever_it_is_called(here: Path) -> None:
    for name in ("u", "wave_twice", "n" * MAX_LENGTH):
        new("package", name)
        for kind in ("skill", "robot"):
            new(kind, f"{kind[0]}{name}"[:MAX_LENGTH], "--dir", name)
    check_with_ruff()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed")
@pytest.mark.usefixtures("lcm_library")
def test_a_packages_checks_leave_its_generated_messages_alone(here: Path) -> None:
    new("package", "garden")
    definition = here / "garden" / "garden" / "garden_msgs" / "Moisture.lcm"
    definition.parent.mkdir()
    definition.write_text(
        "package garden_msgs; struct Moisture { std_msgs.Header header; string bed; int32_t n; float history[n]; }"
    )
    assert run_command(["messages", "generate", "garden/garden"]) == 0
    assert len(list(definition.parent.glob("*.py*"))) == 3
    check_with_ruff()


def check_with_ruff() -> None:
    for command in (["check"], ["format", "--diff"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
        done = subprocess.run(ruff, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_coding_agents_are_told_commands_that_exist(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every ``dimos-streams`` command and option of the texts that are made."""
    new("package", "demo")
    texts = "\n".join(text for path, text in tree(here).items() if path.endswith((".md", ".yaml")))
    commands = {
        tuple(shlex.split(line, comments=True)) for line in re.findall(r"dimos-streams ((?!\[)[a-z][^`\n]*)", texts)
    }
    assert len(commands) > 8
    for command in commands:
        words = [word for word in command if not word.startswith("-")]
        depth = 2 if words[0] in ("new", "recording") else 1
        capsys.readouterr()
        assert run_command([*words[:depth], "--help"]) == 0, command
        help_text = capsys.readouterr().out
        for option in (word for word in command if word.startswith("--")):
            assert option in help_text, command
