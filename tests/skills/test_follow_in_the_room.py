"""``follow_person`` on the simulated robot: camera, detector, lidar, velocity gate and physics are the real ones."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.testing import HarnessCall
from dimos_streams.tool_stream.event import Outcome
from tests.skills.robot_in_a_room import Room, room_with

pytestmark = pytest.mark.slow


async def _follow(room: Room, timeout_s: float = 120.0) -> HarnessCall:
    call = await room.harness.call("follow_person", description="the man in the red shirt", timeout_s=timeout_s)
    assert await call.answer() == "Following the man in the red shirt"
    return call


def _has(call: HarnessCall, event: str) -> bool:
    return any(each.data.get("event") == event for each in call.events)


@pytest.mark.virtual_time
@pytest.mark.feature("A8")
@pytest.mark.parametrize("seed", [1, 5])
async def test_follows_a_walking_person_for_a_minute(seed: int) -> None:
    async with room_with(FollowPerson, seed=seed) as room:
        call = await _follow(room, timeout_s=75.0)
        await room.until(lambda: room.distance("person_red") <= 2.5)
        distances, clearances = [], []
        for _ in range(600):
            await asyncio.sleep(0.1)
            distances.append(room.distance("person_red"))
            clearances.append(room.clearance())
        assert sum(1.0 <= distance <= 2.5 for distance in distances) >= 0.8 * len(distances)
        assert min(clearances) > 0.05
        assert (await call.result())["reason"] == "timeout"
        await room.until(room.is_still, timeout_s=2.0)


@pytest.mark.virtual_time
@pytest.mark.feature("A8")
async def test_a_person_who_is_gone_is_lost() -> None:
    async with room_with(FollowPerson, seed=1, events=[{"at_s": 12.0, "hide": "person_red"}]) as room:
        call = await _follow(room)
        closed = await call.closed(timeout_s=60.0)
        assert _has(call, "lost")
        assert not _has(call, "found_again")
        assert closed.outcome is Outcome.FAILED
        assert "lost them, not seen for 10 s" in closed.text
        await room.until(room.is_still, timeout_s=2.0)
        await asyncio.sleep(3.0)
        assert room.is_still()


@pytest.mark.virtual_time
@pytest.mark.feature("A8")
async def test_a_person_who_comes_back_is_found_again() -> None:
    events = [{"at_s": 8.0, "hide": "person_red"}, {"at_s": 12.0, "show": "person_red"}]
    async with room_with(FollowPerson, seed=1, events=events) as room:
        call = await _follow(room)
        await call.wait_for(lambda event: event.data.get("event") == "found_again")
        await asyncio.sleep(6.0)
        assert 1.0 <= room.distance("person_red") <= 2.5


@pytest.mark.virtual_time
@pytest.mark.feature("A8")
async def test_a_frozen_camera_stops_the_robot_until_it_works_again() -> None:
    events = [{"at_s": 6.0, "freeze_camera": True}, {"at_s": 10.0, "freeze_camera": False}]
    async with room_with(FollowPerson, seed=1, events=events) as room:
        call = await _follow(room)
        await call.wait_for(lambda event: event.data.get("event") == "frozen")
        await room.until(room.is_still, timeout_s=1.0)
        while not _has(call, "unfrozen"):
            assert room.is_still()
            await asyncio.sleep(0.1)
        await asyncio.sleep(8.0)
        assert 1.0 <= room.distance("person_red") <= 2.5


@pytest.mark.virtual_time
@pytest.mark.feature("A8")
@pytest.mark.parametrize(
    ("start", "person"),
    [
        pytest.param((2.4, -0.8, 90.0), (2.4, 3.7), id="dining table"),
        pytest.param((0.6, 2.3, 0.0), (4.0, 2.3), id="chairs and table"),
        pytest.param((-0.5, -3.5, 0.0), (3.9, -3.4), id="shelf"),
    ],
)
async def test_goes_around_furniture(start: tuple[float, float, float], person: tuple[float, float]) -> None:
    x, y, yaw = start
    stands = {"at_s": 0.0, "place": "person_red", "x": person[0], "y": person[1]}
    where = {"start_x": x, "start_y": y, "start_yaw_deg": yaw}
    async with room_with(FollowPerson, people=["person_red"], events=[stands], **where) as room:
        await _follow(room)
        clearances = []
        for _ in range(150):
            await asyncio.sleep(0.1)
            clearances.append(room.clearance())
        assert room.distance("person_red") < 2.1
        assert min(clearances) > 0.05
