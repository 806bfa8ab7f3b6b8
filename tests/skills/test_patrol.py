"""``patrol`` on the simulated robot: the guard's round, and whom it meets."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest

from dimos_streams.skills.patrol import Patrol
from dimos_streams.skills.patrol_run import MOST_ENCOUNTERS
from dimos_streams.testing import HarnessCall, ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until
from tests.skills.detections import Camera, Seen, odometry
from tests.skills.robot_in_a_room import Room, room_with

pytestmark = pytest.mark.slow

HOME, NORTH, SOUTH = (-2.4, -0.9), (-1.4, -0.1), (-1.4, -1.7)
CONFIG: dict[str, Any] = {"waypoints": [SOUTH, NORTH], "look_around_deg": 0.0}
RED = "person in a red shirt and blue trousers"


def _distance(room: Room, point: tuple[float, float]) -> float:
    pose = room.simulator.world.pose()
    return math.dist((pose.x, pose.y), point)


def _updates(call: HarnessCall, event: str) -> list[str]:
    return [each.text for each in call.events if each.data.get("event") == event]


@pytest.mark.virtual_time
async def test_an_empty_room_is_patrolled() -> None:
    async with room_with(Patrol, CONFIG | {"look_around_deg": 90.0}, people=[]) as room:
        call = await room.harness.call("patrol", rounds=2)
        assert await call.answer() == "On patrol: 2 way-points, 2 times, looking out for person"
        for place, name in ((SOUTH, "1 of 2, round 1"), (NORTH, "2 of 2, round 1"), (SOUTH, "1 of 2, round 2")):
            await call.wait_for(lambda event, name=name: name in event.text)  # type: ignore[misc]
            assert _distance(room, place) < 0.2
            scene = json.loads(room.harness.module.state_json)["scene"]
            assert (scene["goal"]["x"], scene["goal"]["y"]) == place
            assert [(each["name"], each["x"], each["y"]) for each in scene["waypoints"]] == [
                ("1", *SOUTH),
                ("2", *NORTH),
            ]
            ahead = [NORTH] if place == SOUTH else []
            assert [tuple(point) for point in scene["path"]] == [place, *ahead, pytest.approx(HOME, abs=0.02)]
        closed = await call.closed(timeout_s=90.0)
        assert closed.outcome is Outcome.COMPLETED
        assert closed.text.startswith("Patrolled 2 rounds, 4 way-points. Met nobody. Ended 0.")
        assert _distance(room, HOME) < 0.2
        assert json.loads(room.harness.module.state_json)["scene"].keys() == {"waypoints"}
        assert closed.data["result"]["home_m"] == pytest.approx(_distance(room, HOME), abs=0.05)
        for update in (event for event in call.events if event.data.get("event") == "waypoint"):
            reported = update.data["x"], update.data["y"]
            assert f"{min(math.dist(reported, place) for place in (NORTH, SOUTH)):.2f} m from it" in update.text
        await room.until(room.is_still, timeout_s=2.0)


@pytest.mark.virtual_time
async def test_whoever_appears_is_followed_and_reported_and_the_round_goes_on() -> None:
    events = [{"at_s": 0.0, "hide": "person_red"}, {"at_s": 3.0, "show": "person_red"}]
    async with room_with(Patrol, CONFIG, seed=3, people=["person_red"], events=events) as room:
        call = await room.harness.call("patrol", follow_s=10.0)
        seen = await call.wait_for(lambda event: event.data.get("event") == "seen")
        stance = room.simulator.world.walkers["person_red"].stance
        assert room.simulator.world.time > 3.0
        assert seen.data["label"] == RED
        assert math.dist((seen.data["x"], seen.data["y"]), (stance.x, stance.y)) < 0.5
        assert seen.text == f"Saw {RED} at ({seen.data['x']:.1f}, {seen.data['y']:.1f})"
        assert all(round(seen.data[axis], 2) == seen.data[axis] for axis in "xy"), "to the centimetre"
        await room.until(lambda: room.distance("person_red") < 2.5)
        await asyncio.sleep(5.0)
        assert 1.0 <= room.distance("person_red") <= 2.5
        report = await call.wait_for(lambda event: event.data.get("event") == "back")
        assert report.text.startswith(f"Stopped following {RED}: the time is over. Followed for 10 s")
        reached_before = len(_updates(call, "waypoint"))
        result = await call.result(timeout_s=120.0)
        assert len(_updates(call, "waypoint")) > reached_before
        assert (result["reached"], result["missed"]) == (2, 0)
        (met,) = result["encounters"]
        assert (met["label"], round(met["followed_s"])) == (RED, 10)
        assert _distance(room, HOME) < 0.2


@pytest.mark.virtual_time
async def test_somebody_who_leaves_is_reported_as_lost() -> None:
    events = [{"at_s": 8.0, "hide": "person_red"}]
    async with room_with(Patrol, CONFIG, seed=3, people=["person_red"], events=events) as room:
        call = await room.harness.call("patrol", follow_s=60.0)
        result = await call.result(timeout_s=120.0)
        assert len(_updates(call, "lost")) == 1
        assert "lost them" in result["encounters"][0]["ended"]
        assert result["reached"] == 2


@pytest.mark.virtual_time
async def test_only_those_who_fit_are_cared_for() -> None:
    stands = {"at_s": 0.0, "place": "person_red", "x": 1.0, "y": -2.2}
    async with room_with(Patrol, CONFIG, people=["person_red"], events=[stands]) as room:
        call = await room.harness.call("patrol", watch_for=["somebody in a green shirt"])
        assert (await call.result(timeout_s=90.0))["encounters"] == []


@pytest.mark.virtual_time
async def test_whom_to_watch_for_must_be_said() -> None:
    async with ModuleHarness(Patrol, CONFIG) as harness:
        call = await harness.call("patrol", watch_for=["  "])
        harness.feed("odom", odometry())
        closed = await call.closed()
        assert (closed.outcome, closed.text) == (
            Outcome.FAILED,
            "watch_for must say what to look out for, not ['  ']",
        )


@pytest.mark.virtual_time
async def test_a_way_point_that_cannot_be_reached_is_left_out() -> None:
    config = CONFIG | {"waypoints": [(-2.6, 3.4), NORTH], "leg_timeout_s": 12.0}  # the first is under the sofa
    async with room_with(Patrol, config, people=[]) as room:
        call = await room.harness.call("patrol")
        result = await call.result(timeout_s=120.0)
        assert (result["reached"], result["missed"]) == (1, 1)
        assert _updates(call, "missed")[0].startswith("Can't reach way-point 1 of 2, round 1 of 1: ")


@pytest.mark.virtual_time
async def test_looking_around_that_takes_too_long_is_left_out() -> None:
    config = CONFIG | {"waypoints": [HOME], "look_around_deg": 1080.0, "leg_timeout_s": 5.0}
    async with room_with(Patrol, config, people=[]) as room:
        call = await room.harness.call("patrol")
        assert (await call.result(timeout_s=60.0))["reached"] == 1
        said = "Can't look around at way-point 1 of 1, round 1 of 1: not done within 5 s"
        assert _updates(call, "missed") == [said]


@pytest.mark.virtual_time
async def test_a_patrol_without_any_way_point_in_reach_fails() -> None:
    async with room_with(Patrol, CONFIG | {"waypoints": [(-2.6, 3.4)], "leg_timeout_s": 10.0}, people=[]) as room:
        call = await room.harness.call("patrol", rounds=3)
        closed = await call.closed(timeout_s=60.0)
        assert closed.outcome is Outcome.FAILED
        assert "no way-point can be reached" in closed.text


@pytest.mark.virtual_time
async def test_stop_patrol_ends_it_and_the_robot_stands() -> None:
    async with room_with(Patrol, CONFIG, people=[]) as room:
        call = await room.harness.call("patrol")
        await asyncio.sleep(3.0)
        assert not room.is_still()
        stop = await room.harness.call("stop_patrol")
        assert await stop.result() == "Stopped patrolling"
        assert (await call.closed()).outcome is Outcome.CANCELLED
        await room.until(room.is_still, timeout_s=2.0)


@pytest.mark.virtual_time
async def test_a_frozen_camera_is_reported_and_the_round_goes_on() -> None:
    events = [{"at_s": 1.0, "freeze_camera": True}, {"at_s": 8.0, "freeze_camera": False}]
    async with room_with(Patrol, CONFIG, people=[], events=events) as room:
        call = await room.harness.call("patrol")
        await call.wait_for(lambda event: event.data.get("event") == "frozen")
        await call.wait_for(lambda event: event.data.get("event") == "unfrozen")
        assert (await call.result(timeout_s=90.0))["reached"] == 2


@pytest.mark.virtual_time
async def test_who_is_only_reported_is_not_followed() -> None:
    stands = {"at_s": 0.0, "place": "person_red", "x": 1.0, "y": -2.2}
    async with room_with(Patrol, CONFIG, people=["person_red"], events=[stands]) as room:
        call = await room.harness.call("patrol", follow_s=0.0)
        result = await call.result(timeout_s=90.0)
        (met,) = result["encounters"]
        assert (met["followed_s"], met["ended"]) == (0.0, "Only reported.")
        assert _updates(call, "back") == ["Only reported. Back to the round."]
        assert _updates(call, "found") == []
        assert "followed for" not in call.events[-1].text
        assert result["reached"] == 2


@pytest.mark.virtual_time
async def test_a_patrol_among_many_people_reports_the_newest_encounters() -> None:
    far, encounters = (100.0, 0.0), 400
    config = {"waypoints": [far], "look_around_deg": 0.0, "return_home": False, "confirm_frames": 1}
    async with ModuleHarness(Patrol, config | {"again_after_s": 0.0}) as harness:
        at = (0.0, 0.0)
        camera = Camera(harness, [Seen()])

        async def stand() -> None:
            while True:
                harness.feed("odom", odometry(*at))
                await asyncio.sleep(0.05)

        tasks = [asyncio.ensure_future(camera.run()), asyncio.ensure_future(stand())]
        call = await harness.call("patrol", follow_s=0.0)
        await until(lambda: len(_updates(call, "back")) == encounters, timeout_s=120.0)
        camera.view, at = [], far
        closed = await call.closed()
        for task in tasks:
            task.cancel()
    assert closed.outcome is Outcome.COMPLETED, closed.text
    result = closed.data["result"]
    assert (result["met"], len(result["encounters"])) == (encounters, MOST_ENCOUNTERS)
    times = [each["utime"] for each in result["encounters"]]
    assert times == sorted(times)
    assert f". Had {encounters} encounters, the newest with {RED} at (" in closed.text
    newest = [event for event in call.events if event.data.get("event") == "seen"][-1]
    assert abs(times[-1] - newest.utime) < 1e6
