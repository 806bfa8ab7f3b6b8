"""A robot and a listener, written with dimos' own API: ``DIMOS_PYTHON dimos_modules.py robot|watcher FILE``.

They run on dimos' default transport, where dimos is installed, with its settings from environment variables
(``ZENOH_DOMAIN``, ``ZENOH_SCOUT_ADDR``). What they see is a line of JSON in the file, again and again.
"""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator"
from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from dimos.core.coordination.module_coordinator import ModuleCoordinator
from dimos.core.core import rpc
from dimos.core.module import Module
from dimos.core.stream import In, Out
from dimos.msgs.geometry_msgs.PoseStamped import PoseStamped
from dimos.msgs.geometry_msgs.Twist import Twist
from dimos.msgs.nav_msgs.Odometry import Odometry
from dimos.msgs.sensor_msgs.CameraInfo import CameraInfo
from dimos.msgs.sensor_msgs.Image import Image, ImageFormat
from dimos.msgs.vision_msgs.Detection2DArray import Detection2DArray

STEP_S = 0.05
FILE = "DIMOS_TEST_FILE"
"""The environment reaches the processes in which dimos runs its modules."""


def note(seen: dict[str, Any]) -> None:
    target = Path(os.environ[FILE])
    part = target.with_suffix(f".{threading.get_ident()}")  # each input has a thread
    part.write_text(json.dumps(seen))
    part.rename(target)


class TestRobot(Module):
    """Does what the newest velocity says."""

    cmd_vel: In[Twist]
    odom: Out[PoseStamped]
    color_image: Out[Image]
    camera_info: Out[CameraInfo]

    @rpc
    def start(self) -> None:
        super().start()
        self.speed = self.turn = 0.0
        self.commands = 0
        self.cmd_vel.subscribe(self.drive)
        self.ended = threading.Event()
        threading.Thread(target=self.live, daemon=True).start()

    @rpc
    def stop(self) -> None:
        self.ended.set()
        super().stop()

    def drive(self, twist: Twist) -> None:
        self.speed, self.turn = twist.linear.x, twist.angular.z
        self.commands += 1

    def live(self) -> None:
        x = y = yaw = 0.0
        picture = np.zeros((240, 320, 3), np.uint8)
        k = [200.0, 0.0, 159.5, 0.0, 200.0, 119.5, 0.0, 0.0, 1.0]
        number = 0
        while not self.ended.wait(STEP_S):
            x += self.speed * math.cos(yaw) * STEP_S
            y += self.speed * math.sin(yaw) * STEP_S
            yaw += self.turn * STEP_S
            now = time.time()
            turned = [0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]
            self.odom.publish(PoseStamped(ts=now, frame_id="world", position=[x, y, 0.3], orientation=turned))
            if number % 4 == 0:
                self.color_image.publish(Image.from_numpy(picture, ImageFormat.BGR, "camera_optical", now))
                note({"x": x, "y": y, "yaw": yaw, "speed": self.speed, "turn": self.turn, "commands": self.commands})
            if number % 20 == 0:
                self.camera_info.publish(CameraInfo(height=240, width=320, K=k, frame_id="camera_optical", ts=now))
            number += 1


class TestWatcher(Module):
    """Counts what comes, and keeps the newest."""

    odom: In[Odometry]
    color_image: In[Image]
    detections: In[Detection2DArray]
    cmd_vel: In[Twist]

    @rpc
    def start(self) -> None:
        super().start()
        self.seen: dict[str, Any] = {"odom": 0, "color_image": 0, "detections": 0, "cmd_vel": 0}
        self.odom.subscribe(
            lambda m: self.count("odom", x=m.pose.position.x, frame=m.frame_id, late=time.time() - m.ts)
        )
        self.color_image.subscribe(lambda m: self.count("color_image", shape=list(m.data.shape)))
        self.detections.subscribe(lambda m: self.count("detections", labels=labels_of(m)))
        self.cmd_vel.subscribe(lambda m: self.count("cmd_vel", speed=m.linear.x))

    def count(self, stream: str, **newest: Any) -> None:
        self.seen[stream] += 1
        self.seen |= newest
        note(self.seen)


def labels_of(message: Detection2DArray) -> list[str]:
    return [r.hypothesis.class_id for d in message.detections[: message.detections_length] for r in d.results[:1]]


def main(which: str, target: str) -> None:
    os.environ[FILE] = target
    cls: Any = {"robot": TestRobot, "watcher": TestWatcher}[which]
    coordinator = ModuleCoordinator.build(cls.blueprint())
    sys.stdin.read()  # until whoever began it goes
    coordinator.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
