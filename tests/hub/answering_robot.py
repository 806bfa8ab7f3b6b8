"""Robots that read a hub's commands in a thread, and answer as they are told."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import requests

from tests.hub.serving import Robot, ServedHub


class AnsweringRobot:
    """A robot that reads its commands in a thread, and answers each as it is told."""

    def __init__(self, robot: Robot, hub: ServedHub) -> None:
        self.robot, self.hub = robot, hub
        self.taken: list[dict[str, Any]] = []
        self.replies: dict[str, tuple[int, Any]] = {}
        self.mute = False
        self.late = False
        self.connected = threading.Event()
        self.took = threading.Semaphore(0)
        """Released for each command that it is done with."""
        self._thread = threading.Thread(target=self._work, name=robot.name)

    def _work(self) -> None:
        with contextlib.suppress(requests.RequestException), self.robot.commands(self.hub) as commands:
            self.connected.set()
            for _, command in commands:
                self.taken.append(command)
                path = command["path"].partition("?")[0]
                done = {"text": f"{self.robot.name} has done it", "confirmed": True}
                status, body = self.replies.get(path, (200, done))
                if self.late:
                    self.robot.answer(self.hub, command["id"], 504, {"detail": "too late"}, outcome="expired")
                elif not self.mute:
                    self.robot.answer(
                        self.hub,
                        command["id"],
                        status,
                        body,
                        headers={"Link": '</tool_streams?from=7>; rel="events"'},
                    )
                self.took.release()

    def start(self) -> None:
        self._thread.start()
        assert self.connected.wait(20)

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()


@contextlib.contextmanager
def answering(hub: ServedHub, *robots: Robot) -> Iterator[list[AnsweringRobot]]:
    """Robots that answer until the hub ends."""
    made = [AnsweringRobot(robot, hub) for robot in robots]
    for each in made:
        each.start()
    yield made
