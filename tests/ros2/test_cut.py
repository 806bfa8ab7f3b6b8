"""The stock blueprint on one machine, a robot of ROS 2 on another, and the network between them cut."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import wait_for
from tests.namespaces import INTERFACE, Cut, Link, linked
from tests.ros2.fast_dds import FastDdsRobot, RobotState
from tests.ros2.runs import Run

pytestmark = [pytest.mark.live, pytest.mark.feature("G4")]

STANDS_WITHIN_S = 2.0
FORGOTTEN = "nobody is heard in DDS domain"


@pytest.fixture
def link() -> Iterator[Link]:
    """Two machines; the test is on one of them."""
    with linked() as link, link.here.entered():
        yield link


@pytest.fixture
def robot(robot_program: Path, link: Link) -> Iterator[FastDdsRobot]:
    with link.there.entered():
        robot = FastDdsRobot(robot_program, address=link.there.address)
    yield robot
    robot.kill()


@pytest.fixture
def run(robot: FastDdsRobot, free_port: int) -> Iterator[Run]:
    started = Run(robot, free_port, interface=INTERFACE)
    try:
        started.begun()
        yield started
    finally:
        started.end()


def test_a_cut_network_ends_what_moves_the_robot_and_nothing_moves_until_a_new_call(
    link: Link, robot: FastDdsRobot, run: Run
) -> None:
    turning = begun(run, robot, "turn", None, angle_deg=720)
    held = stands_while_cut(link, "silent", run, robot, turning)  # too short for either end to forget the other
    only_a_new_call_moves(run, robot, held)

    robot.command("yield")  # its own navigation asks our gate
    navigating = begun(run, robot, "navigate_to", "answer", x=-6.0, y=0.0)
    held = stands_while_cut(link, "unplugged", run, robot, navigating, until=FORGOTTEN)
    wait_for(lambda: robot.state().status == 5)  # its goal has been cancelled after all
    only_a_new_call_moves(run, robot, held)


def begun(run: Run, robot: FastDdsRobot, skill: str, wait: str | None, **arguments: float) -> dict[str, str]:
    call = run.call(skill, wait, **arguments)
    wait_for(lambda: not robot.state().still, why=lambda: (robot.state(), run.calls()))
    return call


def stands_while_cut(
    link: Link, how: Cut, run: Run, robot: FastDdsRobot, call: dict[str, str], until: str = ""
) -> RobotState:
    """The robot stands in time, and the call ends with one line. The cut lasts until the health says ``until``."""
    with link.cut(how):
        cut_at = time.monotonic()
        wait_for(lambda: robot.state().still)
        assert time.monotonic() - cut_at < STANDS_WITHIN_S
        wait_for(lambda: run.state(call)["state"] == "closed")
        ended = run.state(call)
        assert ended["outcome"] == "failed"
        assert "odom" in ended["text"]
        assert "\n" not in ended["text"]
        wait_for(lambda: run.health("robot").startswith(until))
        return robot.state()


def only_a_new_call_moves(run: Run, robot: FastDdsRobot, held: RobotState) -> None:
    """After a cut a new call works, and nothing but that has moved the robot since it was held."""
    wait_for(lambda: run.call("turn", angle_deg=20)["outcome"] == "completed")
    now = robot.state()
    assert (now.x, now.y) == (held.x, held.y)
    assert math.remainder(now.yaw - held.yaw, math.tau) == pytest.approx(math.radians(20), abs=0.1)
