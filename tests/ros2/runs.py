"""Runs of the stock blueprint on a robot of ROS 2, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import requests

from tests.helpers import wait_for
from tests.ros2.fast_dds import FastDdsRobot
from tests.skill_calls import call_skill

BLUEPRINT = Path(__file__).with_name("robot.yaml")


class Run:
    """A run of the blueprint in a process of its own, as an operator reaches it."""

    def __init__(self, robot: FastDdsRobot, port: int, **settings: object) -> None:
        """``settings`` are those of the robot's module that the blueprint leaves out."""
        settings["domain_id"] = robot.domain
        options = ["--in-process", "--bus", "memq://", "--port", str(port)]
        for name, value in settings.items():
            options += ["--set", f"robot.{name}={value}"]
        command = [sys.executable, "-m", "dimos_streams", "run", str(BLUEPRINT), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._url = f"http://127.0.0.1:{port}"

    def begun(self) -> None:
        """Wait until the robot, which has to be found, can be moved."""
        wait_for(lambda: {"move", "follow_person", "navigate_to", "pause"} <= self.skills(), 40.0)
        wait_for(lambda: self.call("turn", angle_deg=3)["outcome"] == "completed", why=self.calls)

    def end(self) -> None:
        """Kill it. Twice is fine."""
        self.process.kill()
        self.process.communicate()

    def skills(self) -> set[str]:
        """The skills that can be called by now."""
        assert self.process.poll() is None, self.process.communicate()[1]
        try:
            return {skill["name"] for skill in requests.get(f"{self._url}/skills", timeout=20).json()}
        except requests.ConnectionError:
            return set()

    def call(self, skill: str, wait: str | None = "close", **arguments: Any) -> dict[str, Any]:
        """Call a skill; the event that was waited for, or only the call's id."""
        return call_skill(self._url, skill, arguments, wait=wait, begins_within_s=20.0)

    def calls(self) -> Any:
        """All calls, for messages of failures."""
        return self._get("/calls")

    def state(self, call: dict[str, Any]) -> Any:
        """How a call stands."""
        return self._get(f"/calls/{call['call_id']}")

    def health(self, module: str) -> Any:
        """What a module says of itself."""
        return next(found["health"] for found in self._get("/modules") if found["name"] == module)

    def cancel(self, call: dict[str, Any]) -> None:
        requests.post(f"{self._url}/calls/{call['call_id']}/cancel", timeout=20).raise_for_status()

    def _get(self, path: str) -> Any:
        return requests.get(f"{self._url}{path}", timeout=20).json()

    def signal(self, number: signal.Signals) -> float:
        """Send a signal; when that was."""
        os.kill(self.process.pid, number)
        return time.monotonic()
