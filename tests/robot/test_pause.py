"""A paused agent holds its robot still, whatever skills want; the whole stock robot in virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from dimos_streams.testing import MissionRun

SMALL = {"robot.camera_width": 160, "robot.camera_height": 120}


def speed(run: MissionRun) -> float:
    twist = run.topic("/odom").last.twist.twist
    return float(max(math.hypot(twist.linear.x, twist.linear.y), abs(twist.angular.z)))


@pytest.mark.slow
@pytest.mark.feature("B3")
async def test_pausing_holds_the_robot_still_and_resuming_lets_it_go(
    blueprint_run: Callable[..., MissionRun],
) -> None:
    async with blueprint_run("follow-person", seed=3, settings=SMALL) as run:
        await run.say("follow the person in red")
        await run.until(lambda: run.topic("/odom").last and speed(run) > 0.3)
        await (await run.call("pause")).result()
        await run.sleep(1.0)
        begin = run.position()
        commands = run.topic("/skill_vel").count
        for _ in range(10):
            await run.sleep(1.0)
            assert speed(run) < 0.02
        assert math.dist(begin, run.position()) < 0.02
        assert run.topic("/skill_vel").count > commands, "the skill goes on wanting"
        await (await run.call("resume")).result()
        await run.until(lambda: speed(run) > 0.3)
