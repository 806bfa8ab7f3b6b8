"""The stock blueprint on a robot that shares no code with the package: driven, followed with, held and cut off."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.ros2.fast_dds import FastDdsRobot
from tests.ros2.sightings import PERSON

pytestmark = [pytest.mark.live, pytest.mark.feature("G4")]

BLUEPRINT = Path(__file__).with_name("robot.yaml")
CUT_S = 2.0


class Run:
    """A run of the blueprint in a process of its own, as an operator reaches it."""

    def __init__(self, robot: FastDdsRobot, port: int) -> None:
        options = [
            "--in-process",
            "--bus",
            "memq://",
            "--port",
            str(port),
            "--set",
            f"robot.domain_id={robot.domain}",
        ]
        command = [sys.executable, "-m", "dimos_streams", "run", str(BLUEPRINT), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._url = f"http://127.0.0.1:{port}"

    def skills(self) -> set[str]:
        """The skills that can be called by now."""
        assert self.process.poll() is None, self.process.communicate()[1]
        try:
            return {skill["name"] for skill in requests.get(f"{self._url}/skills", timeout=5).json()}
        except requests.ConnectionError:
            return set()

    def call(self, skill: str, wait: str | None = "close", **arguments: Any) -> dict[str, Any]:
        """Call a skill; the event that was waited for, or only the call's id."""
        body, params = {"skill": skill, "arguments": arguments}, {"wait": wait} if wait else {}
        deadline = time.monotonic() + 20.0
        while True:
            response = requests.post(f"{self._url}/calls", params=params, json=body, timeout=40)
            if response.status_code != requests.codes.unavailable or time.monotonic() > deadline:
                break
            time.sleep(0.2)  # the machine is too busy for its heartbeats
        assert response.ok, response.text
        found: dict[str, Any] = response.json()
        return found

    def calls(self) -> Any:
        """All calls, for messages of failures."""
        return requests.get(f"{self._url}/calls", timeout=5).json()

    def cancel(self, call: dict[str, Any]) -> None:
        requests.post(f"{self._url}/calls/{call['call_id']}/cancel", timeout=5).raise_for_status()

    def signal(self, number: signal.Signals) -> float:
        """Send a signal; when that was."""
        os.kill(self.process.pid, number)
        return time.monotonic()


@pytest.fixture
def run(robot: FastDdsRobot, free_port: int) -> Iterator[Run]:
    started = Run(robot, free_port)
    try:
        wait_for(lambda: {"move", "follow_person", "navigate_to", "pause"} <= started.skills(), 40.0)
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


def wait_for(
    condition: Callable[[], object], timeout_s: float = 15.0, why: Callable[[], object] = lambda: "it did not come"
) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, why()
        time.sleep(0.02)


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
    time.sleep(0.5)
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

    robot.tell("yield")  # its own navigation asks our gate from now on
    run.call("navigate_to", wait="answer", x=-6.0, y=0.0)
    wait_for(lambda: not robot.state().still)
    stands_after(robot, run.signal(signal.SIGKILL))
    assert robot.state().status == 2  # the goal goes on, as those of dead clients do: it moves nothing


def stands_after(robot: FastDdsRobot, cut_at: float) -> None:
    wait_for(lambda: robot.state().still)
    assert time.monotonic() - cut_at < CUT_S


def distance(robot: FastDdsRobot) -> float:
    return math.dist((robot.state().x, robot.state().y), PERSON)
