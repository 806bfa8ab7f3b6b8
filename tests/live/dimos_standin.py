"""A robot as dimos runs them, in a process of its own that shares no code with this package.

Keys, bytes and session are dimos', packed by hand. ``python dimos_standin.py KEY_PREFIX SCOUTING_GROUP:PORT``.

A base that does what the newest velocity says, for ever: it stops only when it is told to. On its standard output is
where it is, ten times a second, as JSON; on its standard input it takes words that make it misbehave.
"""

from __future__ import annotations

import json
import math
import pickle
import struct
import sys
import threading
import time

import zenoh

STEP_S = 0.05
TWIST = bytes.fromhex("2e7c07d7cdf7e027")
POSE_STAMPED = bytes.fromhex("6a82696458c279a0")
IMAGE = bytes.fromhex("535cface1f4f5717")
CAMERA_INFO = bytes.fromhex("afb501b00707a02a")
DETECTIONS = bytes.fromhex("d4e87e619f4e9c86")
WIDTH, HEIGHT = 64, 48


def text(value: str) -> bytes:
    return struct.pack(">I", len(value.encode()) + 1) + value.encode() + b"\0"


def header(frame: str) -> bytes:
    now = time.time()
    return struct.pack(">iii", 0, int(now), int(now % 1 * 1e9)) + text(frame)


class Robot:
    """The base, and what it senses."""

    def __init__(self, session: zenoh.Session, prefix: str) -> None:
        self.x = self.y = self.yaw = self.speed = self.turn = 0.0
        self.fault = ""
        self._session, self._prefix = session, prefix
        self._publishers: dict[str, zenoh.Publisher] = {}
        self._subscriber = session.declare_subscriber(f"{prefix}/cmd_vel/geometry_msgs.Twist", self.drive)

    def drive(self, sample: zenoh.Sample) -> None:
        data = sample.payload.to_bytes()
        assert data[:8] == TWIST
        assert len(data) == 8 + 6 * 8
        self.speed, _, _, _, _, self.turn = struct.unpack(">6d", data[8:])

    def step(self) -> None:
        self.x += self.speed * math.cos(self.yaw) * STEP_S
        self.y += self.speed * math.sin(self.yaw) * STEP_S
        self.yaw += self.turn * STEP_S

    def send(self, topic: str, kind: str, data: bytes) -> None:
        key = f"{self._prefix}/{topic}/{kind}"
        if key not in self._publishers:
            self._publishers[key] = self._session.declare_publisher(key)
        self._publishers[key].put(data)

    def send_odometry(self) -> None:
        if self.fault == "pickle":
            self.send("odom", "geometry_msgs.PoseStamped", pickle.dumps({"x": self.x}))
            return
        pose = (self.x, self.y, 0.3, 0.0, 0.0, math.sin(self.yaw / 2), math.cos(self.yaw / 2))
        self.send("odom", "geometry_msgs.PoseStamped", POSE_STAMPED + header("world") + struct.pack(">7d", *pose))

    def send_picture(self) -> None:
        """All blue, in OpenCV's order."""
        encoding = "yuv422" if self.fault == "encoding" else "bgr8"
        data = bytes((255, 0, 0)) * (WIDTH * HEIGHT)
        head = struct.pack(">i", len(data)) + header("camera_optical") + struct.pack(">ii", HEIGHT, WIDTH)
        self.send(
            "color_image",
            "sensor_msgs.Image",
            IMAGE + head + text(encoding) + struct.pack(">Bi", 0, WIDTH * 3) + data,
        )

    def send_camera_info(self) -> None:
        k = (50.0, 0.0, 31.5, 0.0, 50.0, 23.5, 0.0, 0.0, 1.0)
        head = struct.pack(">i", 0) + header("camera_optical") + struct.pack(">ii", HEIGHT, WIDTH) + text("")
        matrices = struct.pack(">30d", *k, *([0.0] * 21))
        self.send(
            "camera_info",
            "sensor_msgs.CameraInfo",
            CAMERA_INFO + head + matrices + struct.pack(">iiiiiib", *([0] * 7)),
        )

    def send_detections(self) -> None:
        """Somebody in the left half of the picture; where is unknown, as the pose is all zero."""
        result = text("person in red") + struct.pack(">d", 0.9) + struct.pack(">43d", *([0.0] * 43))
        results = struct.pack(">i", 0 if self.fault == "labels" else 1)
        box = struct.pack(">5d", 16.0, 24.0, 0.0, 10.0, 30.0)
        one = results + header("camera_optical") + (b"" if self.fault == "labels" else result) + box + text("7")
        data = DETECTIONS + struct.pack(">i", 1) + header("camera_optical") + one
        self.send("detections", "vision_msgs.Detection2DArray", data)


def opened(group: str) -> zenoh.Session:
    """A session with the settings that dimos gives its own."""
    config = zenoh.Config()
    for name, value in {
        "mode": "peer",
        "listen/endpoints": ["tcp/127.0.0.1:0"],
        "scouting/multicast/enabled": True,
        "scouting/multicast/address": group,
        "scouting/multicast/interface": "lo",
        "scouting/gossip/enabled": True,
        "transport/shared_memory/enabled": False,
    }.items():
        config.insert_json5(name, json.dumps(value))
    return zenoh.open(config)


def main(prefix: str, group: str) -> None:
    session = opened(group)
    robot = Robot(session, prefix)
    ended = threading.Event()

    def obey() -> None:
        for line in sys.stdin:
            robot.fault = line.strip()
        ended.set()

    threading.Thread(target=obey, daemon=True).start()
    number = 0
    while not ended.wait(STEP_S):
        robot.step()
        robot.send_odometry()
        if number % 2 == 0:
            robot.send_picture()
            robot.send_detections()
            state = {"x": robot.x, "y": robot.y, "yaw": robot.yaw, "speed": robot.speed, "turn": robot.turn}
            sys.stdout.write(json.dumps(state) + "\n")
            sys.stdout.flush()
        if number % 10 == 0:
            robot.send_camera_info()
        number += 1
    session.close()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(*sys.argv[1:])
