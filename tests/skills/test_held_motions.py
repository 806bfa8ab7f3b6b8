"""Motions of a robot that somebody holds, and a stop that does not wait for what it ends."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from dimos_streams.errors import SkillError
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.skill import Call
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.moving.steering import SCAN_AGE_S, surroundings_of
from dimos_streams.skills.own_calls import OwnCalls
from dimos_streams.testing import ModuleHarness
from tests.skills.detections import odometry

STEP_S = 0.1


async def _stand(harness: ModuleHarness, seconds: float) -> None:
    for _ in range(round(seconds / STEP_S)):
        harness.feed("odom", odometry())
        await asyncio.sleep(STEP_S)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("skill", "arguments", "why"),
    [
        ("move", {"distance_m": 1.0}, "blocked after 0.00 of 1 m"),
        ("turn", {"angle_deg": 90.0}, "blocked after 0.0 of 90 deg"),
        ("go_to", {"x": 3.0, "y": 0.0}, "can't get nearer than 3.00 m"),
    ],
)
async def test_nobody_is_blocked_while_somebody_holds_the_robot(
    skill: str, arguments: dict[str, Any], why: str
) -> None:
    async with ModuleHarness(Drive, {"sidesteps": 0}) as harness:
        harness.feed("hold", Hold(source="desk", seq=1, hold=True, valid_s=60.0))
        call = await harness.call(skill, **arguments)
        await _stand(harness, 15.0)
        assert call.events[-1].type != "close", call.events[-1].text
        harness.feed("hold", Hold(source="desk", seq=2, hold=False, valid_s=60.0))
        await _stand(harness, 15.0)
        assert why in call.events[-1].text
        assert json.loads(harness.module.state_json or "{}") == {}, "no map shows a way on which nobody is"


@pytest.mark.virtual_time
async def test_a_stop_that_can_not_end_what_drives_has_said_stop_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(*args: Any) -> NoReturn:
        raise SkillError("not ended within 2 s: moving 1 m")

    monkeypatch.setattr(OwnCalls, "end", hangs)
    async with ModuleHarness(Drive) as harness:
        stop = await harness.call("stop")
        with pytest.raises(SkillError, match="not ended"):
            await stop.result()
        assert harness.sent("cmd_vel") == [Twist()]


@pytest.mark.virtual_time
async def test_what_was_near_a_while_ago_is_in_nobodys_way() -> None:
    async with ModuleHarness(Drive) as harness:
        drive = harness.module
        assert isinstance(drive, Drive)
        harness.feed("scan", LaserScan(range_max=5.0, angle_increment=0.1, ranges=[1.0] * 9))
        await asyncio.sleep(SCAN_AGE_S - 0.1)
        assert surroundings_of(drive.scan, 0.3).free_distance(0.4) < 1.0
        await asyncio.sleep(0.2)
        assert surroundings_of(drive.scan, 0.3).free_distance(0.4) == float("inf")


@pytest.mark.virtual_time
async def test_calls_that_do_not_end_are_asked_again_and_again_and_named_after_a_bound() -> None:
    asked: list[str] = []

    async def cancel(call_id: str, reason: str) -> None:
        asked.append(call_id)

    calls, by = OwnCalls(), cast(Call, SimpleNamespace(skills=SimpleNamespace(cancel=cancel)))
    with (
        calls.running(cast(Call, SimpleNamespace(id="c1")), "moving 1 m"),
        pytest.raises(SkillError, match=r"^not ended within 2 s: moving 1 m$"),
    ):
        async with asyncio.timeout(10.0):
            await calls.end(by, "stop was called")
    assert len(asked) > 5
    assert await calls.end(by, "once more") == []
