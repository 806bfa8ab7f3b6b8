"""A robot of real processes, begun as a user begins it, for pages to look at."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from tests.browser.odometer import Odometer, odometer
from tests.cli.machine import Machine, read_until

FOLLOW = "look out for a person in a red shirt and follow them"
_ASKS = "agent.approval={rules: [{skill: go_to}]}"
"""Whoever clicks on the map is asked by the page; the model's own call to go somewhere needs an approval."""
_NEEDED = frozenset({"say", "follow_person", "look_out_for", "go_to"})
ON_AND_ON = (
    "robot.people=[{name: person_red, shirt: red, trousers: blue, speed: 0.9,"
    " path: [[-3.6, -2.8], [3.6, -2.8], [3.6, 2.8], [-3.6, 2.8]]},"
    " {name: person_green, shirt: green, place: {x: 0, y: 0}}]",
    "robot.furniture=[]",
    "robot.start_x=-4.2",
    "robot.start_y=-2.6",
    "follow.first_look_s=0.5",
    "follow.search_turn=1.5",
)
"""Settings of a run in an empty room, in which somebody walks round and round: whoever follows them is always on the
way, and whoever looks for them sees them soon."""
_BOUND_S = 30.0
_FINDS_S = 60.0
_TRIES = 3


class LiveRun:
    """The run's HTTP interface, its processes, and where its robot is."""

    def __init__(self, url: str, robot: Odometer) -> None:
        self.url = url
        self.robot = robot

    def get(self, path: str) -> Any:
        """What the bridge answers."""
        return requests.get(self.url + path, timeout=10).json()

    def say(self, text: str) -> str:
        """Tell the agent something, as any program may; the id of the call, which ends with the mission."""
        answer = requests.post(f"{self.url}/calls", json={"skill": "say", "arguments": {"text": text}}, timeout=10)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["call_id"])

    def follow(self) -> None:
        """Let the robot follow somebody, and wait until it does. It turns and searches by itself, and gives that up
        where the processor is so short that its camera shows nothing new."""
        for _ in range(_TRIES):
            said = self.say("follow the person in the red shirt")
            until(lambda: self._follows() or self._is_over(said), _FINDS_S)  # noqa: B023 - it is asked at once
            if self._follows():
                return
        raise AssertionError(f"nobody is followed: {self.get(f'/calls/{said}')['text']}")

    def calls(self, skill: str) -> list[dict[str, Any]]:
        """All calls of a skill, whatever became of them."""
        return [call for call in self.get("/calls?limit=1000") if call["skill"] == skill]

    def open_skills(self) -> list[str]:
        """The skills of all open calls."""
        return [call["skill"] for call in self.get("/calls?state=open")]

    def _follows(self) -> bool:
        """Whether somebody was found: that is what the call answers."""
        calls = self.get("/calls?state=open")
        return any(call["skill"] == "follow_person" and call["answer"] is not None for call in calls)

    def _is_over(self, call_id: str) -> bool:
        return bool(self.get(f"/calls/{call_id}")["state"] == "closed")

    def end_calls(self) -> None:
        """Back to a robot that does nothing."""
        requests.post(f"{self.url}/robots/release", json={"robot": ""}, timeout=10)
        requests.post(f"{self.url}/calls/cancel", json={"reason": "the test is over"}, timeout=10)
        until(lambda: _NEEDED.isdisjoint(self.open_skills()))

    def kill_bridge(self) -> None:
        """End the bridge's process without a word. It is started again, on the same port."""
        (pid,) = (module["pid"] for module in self.get("/modules") if module["name"] == "bridge")
        os.kill(pid, signal.SIGKILL)


class KeptRun:
    """A run that several tests share: it begins for the first of them."""

    def __init__(self, state: Path, *settings: str) -> None:
        self._state, self._settings = state, settings
        self._ends = contextlib.ExitStack()
        self._run: LiveRun | None = None

    def begun(self) -> LiveRun:
        """The run, which this begins if it is not there."""
        if self._run is None:
            self._run = self._ends.enter_context(live_run(self._state, *self._settings))
        return self._run

    def close(self) -> None:
        """End the run. Twice is fine; whoever asks for it then begins it anew."""
        self._run = None
        self._ends.close()


@contextlib.contextmanager
def live_run(state: Path, *settings: str) -> Iterator[LiveRun]:
    """``dimos-streams run follow-person``, with settings, until the end of the block."""
    machine = Machine(state)
    options = [word for setting in (_ASKS, *settings) for word in ("--set", setting)]
    with machine.started("run", "follow-person", "--port", str(machine.port), *options) as process:
        began = read_until(process, "http://")
        address = re.search(r"http://127\.0\.0\.1:\d+", began)
        assert address, began
        with odometer(machine.bus) as robot:
            run = LiveRun(address[0], robot)
            until(lambda: {skill["name"] for skill in run.get("/skills")} >= _NEEDED)
            yield run
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=_BOUND_S)
    assert machine.leaves_nothing()


def until(condition: Any, timeout_s: float = _BOUND_S) -> None:
    """Wait until a condition holds; a bridge that is on its way back does not answer meanwhile."""
    deadline = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(requests.ConnectionError):
            if condition():
                return
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come true within {timeout_s} s")
        time.sleep(0.1)
