"""The stock blueprint on a robot that shares no code with the package: driven, followed with, held and cut off."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator

import pytest

from tests.helpers import wait_for
from tests.ros2.fast_dds import FastDdsRobot
from tests.ros2.runs import Run
from tests.ros2.sightings import PERSON

pytestmark = [pytest.mark.live, pytest.mark.feature("G4")]

CUT_S = 2.0


@pytest.fixture
def run(robot: FastDdsRobot, free_port: int) -> Iterator[Run]:
    started = Run(robot, free_port)
    try:
        started.begun()
        yield started
    finally:
        started.end()


def test_a_robot_of_ros_is_driven_navigated_followed_with_held_and_cut_off(robot: FastDdsRobot, run: Run) -> None:
    moved = run.call("move", distance_m=0.5)
    assert moved["outcome"] == "completed", moved
    assert robot.state().x == pytest.approx(0.5, abs=0.1)
    run.call("turn", angle_deg=30)
    assert robot.state().yaw == pytest.approx(math.radians(30), abs=0.1)

    arrived = run.call("navigate_to", x=0.5, y=-1.0)
    assert arrived["outcome"] == "completed", arrived
    assert arrived["text"].startswith("Arrived at x 0.50 m, y -1.00 m")
    assert (robot.state().x, robot.state().y) == pytest.approx((0.5, -1.0), abs=0.1)
    rejected = run.call("navigate_to", x=150.0, y=0.0)
    assert (rejected["outcome"], rejected["text"]) == ("failed", "/navigate_to_pose has rejected the goal")

    following = run.call("follow_person", wait="answer", description="person in red")
    wait_for(lambda: robot.state().vx > 0.2)
    assert run.call("pause")["outcome"] == "completed"
    wait_for(lambda: robot.state().still, CUT_S)
    held = robot.state()
    time.sleep(0.5)  # what is held does not begin to move again
    assert (robot.state().x, robot.state().y) == (held.x, held.y)
    run.call("resume")
    wait_for(lambda: distance(robot) < 1.4, why=lambda: (robot.state(), run.calls()))
    run.cancel(following)
    wait_for(lambda: robot.state().still)

    begun = run.call("navigate_to", wait="answer", x=-3.0, y=0.0)
    wait_for(lambda: not robot.state().still)
    run.cancel(begun)
    wait_for(lambda: robot.state().still and robot.state().status == 5, CUT_S)

    turning = run.call("turn", wait=None, angle_deg=720)
    wait_for(lambda: abs(robot.state().wz) > 0.2)
    stands_after(robot, run.signal(signal.SIGSTOP))
    run.signal(signal.SIGCONT)
    run.cancel(turning)
    wait_for(lambda: run.state(turning)["state"] == "closed", why=run.calls)

    robot.command("yield")  # its own navigation asks our gate from now on
    run.call("navigate_to", wait="answer", x=-6.0, y=0.0)
    wait_for(lambda: not robot.state().still)
    stands_after(robot, run.signal(signal.SIGKILL))
    assert robot.state().status == 2  # the goal goes on, as those of dead clients do: it moves nothing


def stands_after(robot: FastDdsRobot, cut_at: float) -> None:
    wait_for(lambda: robot.state().still)
    assert time.monotonic() - cut_at < CUT_S


def distance(robot: FastDdsRobot) -> float:
    return math.dist((robot.state().x, robot.state().y), PERSON)
