"""The golden recordings: what the stock skills did when they were recorded is what they do.

``pytest tests/recording/test_golden.py --update-recordings`` runs the missions and records them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.errors import UserError
from dimos_streams.regression.replay import ReplayOptions, recorded_blueprint
from dimos_streams.regression.replay import replay as replay_log
from dimos_streams.regression.report import Report
from dimos_streams.regression.tolerances import Tolerances
from dimos_streams.testing import MissionRun, event

GOLDEN = Path(__file__).parent / "golden"
SMALL = {"robot.camera_width": 160, "robot.camera_height": 120, "robot.odom_hz": 10, "robot.lidar_hz": 5}
NOT_NEEDED = ("*#sensor_msgs.Image", "/tf", "/ground_truth", "/instance_labels", "/cmd_vel")
ELSEWHERE = Tolerances(time_s=0.001, absolute=1e-6, relative=1e-6)
"""Other processors and C libraries round sines in other ways."""
Missions = Callable[..., MissionRun]
Replay = Callable[..., Report]


@pytest.fixture
def recording_only(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--update-recordings"):
        pytest.skip("runs with --update-recordings only")


async def test_record_follow_person(recording_only: None, blueprint_run: Missions) -> None:
    more: dict[str, Any] = {"record": GOLDEN / "follow-person.lcmlog", "without": NOT_NEEDED}
    async with blueprint_run("follow-person", seed=7, settings=SMALL, **more) as run:
        await run.say("follow the person in the red shirt")
        await run.until(event("update", skill="follow_person", event="found"))
        await run.sleep(12)
        await run.say("stop")
        await run.until(event("close", skill="follow_person"))


async def test_record_look_out_then_follow(recording_only: None, blueprint_run: Missions) -> None:
    more: dict[str, Any] = {"record": GOLDEN / "look-out-then-follow.lcmlog", "without": NOT_NEEDED}
    comes = [{"at_s": 0, "hide": "person_red"}, {"at_s": 2, "place": "person_red", "x": 3.2, "y": -1.2}]
    settings = {**SMALL, "robot.events": [*comes, {"at_s": 2, "show": "person_red"}]}
    async with blueprint_run("follow-person", seed=7, settings=settings, **more) as run:
        call = await run.call(
            "look_out_for",
            descriptions=["somebody in a red shirt"],
            then={"skill": "follow_person", "arguments": {"description": "$label"}},
        )
        await run.until(event("update", skill="follow_person", event="found"))
        assert (await call.result())["matched"]
        await run.sleep(6)
        await run.say("stop")
        await run.until(event("close", skill="follow_person"))


async def test_record_patrol(recording_only: None, blueprint_run: Missions) -> None:
    more: dict[str, Any] = {"record": GOLDEN / "patrol.lcmlog", "without": NOT_NEEDED}
    comes = [{"at_s": 0, "hide": "person_red"}, {"at_s": 3, "show": "person_red"}]
    settings = {**SMALL, "robot.events": comes, "patrol.waypoints": [[-1.0, -0.9], [0.0, -0.9]]}
    async with blueprint_run("patrol", seed=7, settings=settings, **more) as run:
        await run.say("patrol")
        await run.until(event(skill="patrol", event="seen"))
        await run.sleep(3.97)  # between two turns of the skill: what comes in the same instant may come first or last
        await run.say("stop")
        await run.until(event("close", skill="patrol"))


@pytest.mark.slow
@pytest.mark.feature("F3")
@pytest.mark.parametrize(
    ("log", "modules"),
    [
        ("follow-person", ["follow"]),
        ("look-out-then-follow", ["follow", "lookout", "drive"]),
        ("patrol", ["patrol"]),
        ("patrol", ["follow", "lookout", "drive", "patrol"]),
    ],
)
def test_the_skills_do_what_they_did(replay: Replay, log: str, modules: list[str]) -> None:
    report = replay(GOLDEN / f"{log}.lcmlog", modules, tolerances=ELSEWHERE)
    assert report.calls
    assert sum(stream.matched for stream in report.streams) > 50


@pytest.mark.slow
@pytest.mark.feature("F3")
def test_a_gain_of_ten_percent_more_is_found() -> None:
    gain = recorded_gain()
    changed = {"follow.distance_gain": gain * 1.1}
    options = ReplayOptions(modules=("follow",), tolerances=ELSEWHERE, settings=changed)
    report = replay_log(GOLDEN / "follow-person.lcmlog", options)
    assert not report.passed
    assert report.first is not None
    assert report.first.stream == "/skill_vel#geometry_msgs.Twist"
    assert {field.field for field in report.first.fields} <= {"linear.x", "linear.y"}


def recorded_gain() -> float:
    """The blueprint's own, or else the module's default."""
    from dimos_streams.skills.follow_person import FollowPersonConfig

    spec = recorded_blueprint(GOLDEN / "follow-person.lcmlog").modules["follow"]
    return FollowPersonConfig.model_validate(dict(spec.config)).distance_gain


@pytest.mark.feature("F3")
def test_another_confidence_is_found_in_the_look_out() -> None:
    options = ReplayOptions(
        modules=("follow", "lookout", "drive"), tolerances=ELSEWHERE, settings={"lookout.confidence": 0.9}
    )
    report = replay_log(GOLDEN / "look-out-then-follow.lcmlog", options)
    assert not report.passed
    assert report.first is not None
    assert report.first.stream.startswith("look_out_for [")
    assert "Saw person in a red shirt" in report.first.text
    failed = {stream.stream.partition(" ")[0] for stream in report.streams if not stream.passed(0)}
    assert failed == {"look_out_for", "/skill_calls#dimos_streams.SkillCall"}


def test_they_are_small() -> None:
    logs = list(GOLDEN.glob("*.lcmlog"))
    assert len(logs) == 3
    assert sum(log.stat().st_size for log in logs) < 2_000_000


def test_a_golden_log_that_is_missing_is_a_users_mistake() -> None:
    with pytest.raises(UserError, match="No such file"):
        replay_log(GOLDEN / "missing.lcmlog", ReplayOptions(modules=("follow",)))
