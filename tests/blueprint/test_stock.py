"""The blueprints that come with the package, and those that others register."""

from __future__ import annotations

import importlib.metadata
import runpy
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import SimpleNamespace

import pytest

from dimos_streams.blueprint import blueprint, include
from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.graph import render
from dimos_streams.blueprint.load import resolve, stock_summaries
from dimos_streams.blueprint.machines import part_of
from dimos_streams.blueprint.robots import robots_of
from dimos_streams.blueprint.settings import explain
from dimos_streams.blueprint.stock import GROUP, find_stock, stock_blueprints
from dimos_streams.blueprint.wiring import wire
from dimos_streams.errors import UserError

OWN = [
    "agent-openai",
    "base-robot",
    "dimos-robot",
    "follow-person",
    "patrol",
    "robot-and-agent",
    "robot-only",
    "ros2-robot",
    "two-robots",
]
NEEDS = {"dimos-robot": "cv2", "ros2-robot": "cyclonedds"}
"""Packages that not every machine can have."""
HEAVY = (
    *("cyclonedds", "mujoco", "simplejpeg", "cv2", "openai", "fastapi", "starlette", "uvicorn", "requests"),
    *("dimos_streams.agent.core", "dimos_streams.agent.loop", "dimos_streams.bridge.calls.broker"),
    *("dimos_streams.journal.journal", "dimos_streams.tool_stream.receiving"),
)


def test_a_gate_of_another_size_than_the_skills_of_its_robot_is_named() -> None:
    wide, patrol = {"gate.robot_radius": 0.4}, {"patrol.drive.side_margin": 0.1}
    alone = include("patrol", namespace="b", set=patrol).without("b/bridge", "b/agent")
    problems = check(blueprint("pair", include("follow-person", namespace="a", set=wide), alone))
    assert [(problem.severity, problem.text) for problem in problems] == [
        (
            "warning",
            "the modules of one robot differ in robot_radius: a/gate.robot_radius is 0.4, "
            "a/follow.robot_radius is 0.22, a/drive.robot_radius is 0.22; set the same for all",
        ),
        (
            "warning",
            "the modules of one robot differ in side_margin: b/gate.side_margin is 0.08, "
            "b/follow.side_margin is 0.08, b/drive.side_margin is 0.08, b/patrol.drive.side_margin is 0.1, "
            "b/patrol.follow.side_margin is 0.08; set the same for all",
        ),
    ]


def test_motions_of_a_robot_without_a_velocity_gate_are_named() -> None:
    gated = include("robot-only", namespace="a")
    problems = check(blueprint("pair", gated, include("robot-only", namespace="b", without=("gate",))))
    assert [(problem.severity, problem.text) for problem in problems] == [
        (
            "warning",
            "skills move the robot by b/follow.cmd_vel, b/drive.cmd_vel, and it has no velocity gate: nothing limits"
            " its speed or stops it before obstacles, and no pause or stop-robot is confirmed",
        )
    ]


def test_a_velocity_gate_on_another_machine_judges_the_motions_of_this_one() -> None:
    whole = resolve("robot-only")
    for gates in ((), ("gate",)):
        modules = {
            name: spec.model_copy(update={"machine": "base" if name in ("robot", *gates) else "desk"})
            for name, spec in whole.modules.items()
            if name != "gate" or gates
        }
        split = whole.model_copy(update={"modules": modules})
        found = [each for each in check(part_of(split, "desk")) if "velocity gate" in each.text]
        assert bool(found) is not bool(gates)


@pytest.mark.slow
def test_they_are_listed_with_their_descriptions() -> None:
    described = {summary.name: summary.description for summary in stock_summaries()}
    assert [name for name in described if name in OWN] == OWN
    assert described["base-robot"] == "A simulated robot with a velocity gate and a detector of people"


@pytest.mark.slow
def test_they_are_listed_with_the_kinds_of_their_robots() -> None:
    robots = {summary.name: summary.robots for summary in stock_summaries()}
    assert robots["follow-person"] == {"simulated": 1}
    assert robots["two-robots"] == {"simulated": 2}
    assert robots["dimos-robot"] == {"outside": 1}
    assert robots["ros2-robot"] == {"ROS 2": 1}
    mine = include("follow-person", types={"robot": "turtle:Turtle"}, namespace="a")
    outside = include("follow-person", without=["robot"], namespace="b")
    odometry = ("b/odom#nav_msgs.Odometry", "b/odom#geometry_msgs.PoseStamped", "c/scan#sensor_msgs.LaserScan")
    fleet = blueprint("fleet", mine, outside.without("b/bridge"), external=odometry)
    assert robots_of(fleet) == {"Turtle": 1, "outside": 1}


def test_an_unknown_name_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(
        UserError, match=r"no blueprint is called 'base-robt'; did you mean 'base-robot'\? \(stock: .*\)"
    ):
        find_stock("base-robt")


@pytest.mark.parametrize("name", OWN)
def test_nothing_is_wrong_with_them(name: str) -> None:
    pytest.importorskip(NEEDS.get(name, "pytest"), reason="its extra is not installed")
    assert [str(problem) for problem in check(resolve(name))] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_they_can_be_drawn_and_explained(name: str) -> None:
    found = resolve(name)
    assert all(module in render(found) for module in found.modules)
    assert {row.module for row in explain(found)} <= set(found.modules)


@pytest.mark.parametrize("name", OWN)
def test_their_header_shows_the_commands(name: str) -> None:
    target = find_stock(name).target
    assert isinstance(target, Path)
    text = target.read_text(encoding="utf-8")
    for command in ("check", "graph", "run"):
        assert f"#   dimos-streams {command} {name}" in text


@pytest.mark.feature("B3")
@pytest.mark.parametrize("name", ["base-robot", *(name for name in OWN if name not in ("base-robot", "two-robots"))])
def test_every_robot_listens_to_who_holds_it_whoever_that_is(name: str) -> None:
    assert wire(resolve(name))["gate"].topics["hold"] == "/hold"


@pytest.mark.slow
def test_checking_them_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from dimos_streams.blueprint.check import check\n"
        "from dimos_streams.blueprint.load import resolve\n"
        f"for name in {OWN!r}: check(resolve(name))\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.slow
def test_other_packages_may_register_blueprints(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_one = EntryPoint("broken", "tests.blueprint.test_load:A_FILE", GROUP)
    vars(broken_one).update(dist=SimpleNamespace(name="somebody"))

    def entry_points(group: str) -> EntryPoints:
        assert group == GROUP
        return EntryPoints(
            [
                EntryPoint("theirs", "tests.blueprint.test_load:FROM_PYTHON", GROUP),
                broken_one,
                EntryPoint("base-robot", "tests.blueprint.test_load:FROM_PYTHON", GROUP),
            ]
        )

    monkeypatch.setattr("dimos_streams.blueprint.stock.entry_points", entry_points)
    assert resolve("theirs").description == "written in Python"
    assert resolve("base-robot").name == "base-robot"
    assert set(stock_blueprints()) >= {"theirs", "broken", *OWN}
    (broken,) = [summary for summary in stock_summaries() if summary.name == "broken"]
    assert {summary.name: summary.package for summary in stock_summaries() if summary.name in (*OWN, "broken")} == {
        **dict.fromkeys(OWN, ""),
        "broken": "somebody",
    }
    assert broken.description == "cannot be loaded: there is no blueprint file 'somewhere.yaml'"


def test_a_name_that_the_folders_own_package_would_register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "pyproject.toml"
    package.write_text(f'[project.entry-points."{GROUP}"]\ngarden = "garden:BLUEPRINT"\n')
    with pytest.raises(UserError) as error:
        resolve("garden")
    assert str(error.value).startswith(
        "no blueprint is called 'garden': the package of pyproject.toml registers it, and is not installed here:"
        " `pip install --editable .` (stock: "
    )
    for odd in ("project = 1", "[project", "[project]\nentry-points = []"):
        package.write_text(odd)
        with pytest.raises(UserError, match=r"^no blueprint is called 'garden' \(stock: "):
            resolve("garden")


def test_the_group_can_be_asked_for() -> None:
    assert all(entry.group == GROUP for entry in importlib.metadata.entry_points(group=GROUP))


def test_the_folder_can_not_be_imported_as_a_package_of_its_own() -> None:
    with pytest.raises(ImportError, match=r"import dimos_streams\.blueprints"):
        runpy.run_path(str(Path(str(find_stock("base-robot").target)).parent / "__init__.py"), run_name="blueprints")
