"""The image, compose and the dev container, as far as they can be checked without an engine."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer.main

from dimos_streams.blueprint.check import check
from dimos_streams.cli.app import create_app
from dimos_streams.cli.option_groups.run_request import RunRequest
from dimos_streams.cli.running.run_plan import prepare
from tests.packaging.build_context import patterns, sent
from tests.packaging.container_files import (
    COMPOSE,
    DOCKERFILE,
    ROOT,
    commands,
    instructions,
    own_services,
    services,
    shell_lines,
    variables,
)
from tests.packaging.test_packaging import LINKED, sources

pytestmark = pytest.mark.feature("H4")

_BESIDE = {"pyproject.toml", "README.md", "LICENSE", "docker/requirements.py"}
_SECRET = re.compile(r"TOKEN|KEY|PASSWORD|SECRET", re.IGNORECASE)
_REFERENCES = ("reference", "blueprint")
"""The parameters of commands that name a blueprint."""


def run_tool(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a checker of the extra `test`; skips the test where it is not installed."""
    found = shutil.which(name, path=Path(sys.executable).parent) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; the extra `test` has it")
    command = [found, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_the_dockerfile_is_without_blame() -> None:
    done = run_tool("hadolint", "--no-color", DOCKERFILE)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.slow
def test_compose_is_of_the_form_that_engines_read() -> None:
    done = run_tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("place", commands())
def test_commands_are_ours_and_their_blueprints_can_be_run(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = parse(commands()[place], monkeypatch)
    for reference in (parsed[name] for name in _REFERENCES if parsed.get(name)):
        settings = tuple(parsed.get("settings") or ())
        assert errors_of(reference, settings, parsed.get("hub"), parsed.get("machine")) == []


@cache
def errors_of(reference: str, settings: tuple[str, ...], hub: str | None, machine: str | None) -> list[str]:
    """What is wrong with a blueprint, or with a machine's part of it."""
    plan = prepare(RunRequest(reference=reference, settings=list(settings), hub=hub, machine=machine))
    return [problem.text for problem in check(plan.blueprint) if problem.severity == "error"]


def parse(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The parameters of a command, as it is called with them. Raises what it would be refused with."""
    monkeypatch.setattr("sys.argv", ["dimos-streams"])
    command: Any = typer.main.get_command(create_app(arguments))
    parent, rest = None, arguments
    while hasattr(command, "commands") and not (command.invoke_without_command and rest[0].startswith("-")):
        name = rest[0]
        assert name in command.commands, f"no command {name!r}"
        command, rest = command.commands[name], rest[1:]
    with command.make_context(arguments[0], list(rest), parent=parent) as context:
        parameters: dict[str, Any] = context.params
    return parameters


@pytest.mark.slow
def test_the_context_is_the_package_and_nothing_else() -> None:
    planted = {
        ".env",
        "docker/.env",
        "dimos_streams/.env",
        "skills/.env.production",
        ".git/config",
        ".venv/bin/python",
        "build/lib/dimos_streams/agent/stale.py",
        "dimos_streams/build/lib/stale.py",
        "dist/dimos_streams-0.1.0.tar.gz",
        "dimos_streams.egg-info/PKG-INFO",
        "skills/__pycache__/drive.cpython-312.pyc",
        "journal.sqlite",
        "walk.lcmlog",
        "id_ed25519",
    }
    tree = {
        path.relative_to(ROOT).as_posix() for top in ("docker", "docs", "tests") for path in (ROOT / top).rglob("*")
    }
    there = planted | tree | set(sources()) | _BESIDE | set(LINKED.values())
    ignored = patterns(ROOT / ".dockerignore")
    assert sent(there, ignored) == set(sources()) | _BESIDE | set(LINKED.values())
    assert sent(planted, []) == planted


@pytest.mark.parametrize(
    ("path", "lines", "is_sent"),
    [
        ("a/b.py", ["*"], False),
        ("a/b.py", ["*", "!a"], True),
        ("a/b.pyc", ["*", "!a", "**/*.py[cod]"], False),
        ("b.pyc", ["**/*.py[cod]"], False),
        ("a/b/c", ["a/*"], False),
        ("a/b/c", ["*/c"], True),
        ("a/b/c", ["**/c"], False),
        ("a/.env/x", ["**/.*"], False),
        ("ab", ["a?"], False),
        ("ab/c", ["a"], True),
        ("a/build.py", ["**/build"], True),
        ("x.md", ["*.md", "!x.md"], True),
        ("x.md", ["!x.md", "*.md"], False),
        ("/".join("abc"), ["/a/b/"], False),
    ],
)
def test_patterns_are_read_as_engines_read_them(path: str, lines: list[str], is_sent: bool) -> None:
    assert bool(sent([path], lines)) == is_sent


def test_an_edit_of_the_sources_installs_no_dependency_again() -> None:
    steps = instructions()
    installs = next(index for index, (name, rest) in enumerate(steps) if name == "RUN" and "-r run.txt" in rest)
    copied = [rest for name, rest in steps[:installs] if name in ("COPY", "ADD")]
    assert copied == ["pyproject.toml docker/requirements.py ./"]
    assert ("COPY", ". .") in steps[installs:]
    after = [rest for name, rest in steps[installs + 1 :] if name == "RUN" and "pip" in rest]
    assert all("--no-deps" in rest for rest in after)


def test_the_image_serves_any_user_and_has_no_secret() -> None:
    steps = instructions()
    assert [rest for name, rest in steps if name == "USER"] == ["1000:1000"]
    shared = "install -d -m 1777 /var/lib/dimos-streams /var/lib/dimos-streams/runs"
    assert any(shared in rest for _, rest in steps), "of root: who owns a directory can replace what is in it"
    assert any("DIMOS_STREAMS_STATE_DIR=/var/lib/dimos-streams" in rest for name, rest in steps if name == "ENV")
    assert ("ENTRYPOINT", '["tini", "-s", "--", "dimos-streams"]') in steps
    assert [rest for name, rest in steps if name in ("ENV", "ARG", "LABEL") and _SECRET.search(rest)] == []
    assert all("--from=build" in rest for name, rest in steps[_last_stage(steps) :] if name in ("COPY", "ADD"))


def _last_stage(steps: list[tuple[str, str]]) -> int:
    return max(index for index, (name, _) in enumerate(steps) if name == "FROM")


def test_secrets_of_compose_come_from_outside_and_the_tokens_have_to() -> None:
    """The hub's is no robot's: who takes a robot over commands no other one."""
    for service in services().values():
        for name, value in variables(service).items():
            if _SECRET.search(name):
                assert value is None or str(value).startswith("${"), f"{name} is in the file"
    for name, service in own_services().items():
        own = "HUB_TOKEN" if name in ("hub", "enrol") else "TOKEN"
        assert str(variables(service)["DIMOS_STREAMS_TOKEN"]).startswith(f"${{DIMOS_STREAMS_{own}:?"), name
        assert own == "HUB_TOKEN" or "HUB_TOKEN" not in json.dumps(service), name


def test_nothing_of_compose_has_more_rights_than_it_needs() -> None:
    for name, service in own_services().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["user"] != "root", name
    published = [port for service in services().values() for port in service.get("ports", ())]
    assert published, "the bridge can be reached"
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """``docker/requirements.py``, which runs before anything is installed."""
    spec = importlib.util.spec_from_file_location("requirements", ROOT / "docker" / "requirements.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_dependencies_are_those_of_pyproject(script: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extras,) = [rest.partition("=")[2] for name, rest in instructions() if (name, rest[:6]) == ("ARG", "EXTRAS")]
    listed = script.requirements(project, extras.split(","))
    assert set(project["dependencies"]) < set(listed)
    nested = script.requirements(project, ["demo"])
    assert nested == [*project["dependencies"], *project["optional-dependencies"]["sim"]]
    with pytest.raises(SystemExit, match=r"no extra 'simm' \(extras: demo, "):
        script.requirements(project, ["simm"])


def test_the_dev_container_is_set_up_by_commands_that_there_are() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    program, target = container["postCreateCommand"].split()
    assert program == "make"
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert container["forwardPorts"] == [7780]


def test_the_page_about_containers_names_what_there_is() -> None:
    files = {word for line in shell_lines() for word in line.split() if word.startswith("docker/")}
    assert files
    assert [name for name in files if not name.endswith(".env") and not (ROOT / name).exists()] == []
