"""A robot whose hour is over in seconds: pictures, scans, poses and calls, as fast as the bridge takes them."""

from __future__ import annotations

import asyncio
import itertools
import math
from typing import Any

import numpy as np

from dimos_streams import clock
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.messages.time import header
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.module import Module
from dimos_streams.robot import sensor_messages
from dimos_streams.robot.rendering.lidar import LidarModel
from dimos_streams.robot.velocity import Velocity
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from tests.detected import detection

TOPICS = {name: f"/{name}" for name in ("color_image", "detections", "scan", "odom")}
"""Of its streams: one without is heard by nobody."""
CHANNELS = {
    "/color_image#sensor_msgs.Image": "",
    "/detections#vision_msgs.Detection2DArray": "",
    "/scan#sensor_msgs.LaserScan": "",
    "/odom#nav_msgs.Odometry": "",
}
"""The same as a run knows them, with the namespace of each: pages are shown no others."""
_WIDTH, _HEIGHT = 320, 240
_PICTURES = 16


class BusyRobot(Module):
    """Drives in a circle, sees somebody in a red shirt, and has short calls with much to say."""

    color_image: Out[Image]
    detections: Out[Detection2DArray]
    scan: Out[LaserScan]
    odom: Out[Odometry]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pause_s = 0.02
        """Between two measurements that nobody has asked for; there is one with each move."""
        self._numbers = itertools.count()
        self._pictures = [_picture(number) for number in range(_PICTURES)]

    async def run(self) -> None:
        """Measure, until the end."""
        while True:
            self._measure()
            await asyncio.sleep(self.pause_s)

    @skill(resources={"base"})
    async def move(self, call: Call, distance_m: float) -> str:
        """Move, and say where it is."""
        self._measure()
        for step in range(40):
            call.progress(f"{step} of 40 steps", distance_m=distance_m * step / 40, bearing_deg=9.0 * step)
            await asyncio.sleep(0)
            if step % 10 == 0:
                await call.update(f"{step} steps are done")
        await call.update(f"{distance_m:g} m are behind me")
        return "there"

    def _measure(self) -> None:
        number = next(self._numbers)
        now, angle = clock.utime(), number * 0.25
        pose = PlanarPose(2 * math.cos(angle), 2 * math.sin(angle), angle + math.pi / 2)
        self.odom.publish(sensor_messages.odometry(now, pose, Velocity(0.5, 0.0, 0.25)))
        ranges = (3 + np.sin(np.linspace(0, 20, LidarModel().rays) + angle)).astype(np.float32)
        self.scan.publish(sensor_messages.laser_scan(now, LidarModel(), ranges, 10.0))
        picture = self._pictures[number % _PICTURES]
        picture.header = header("camera_optical", now)
        self.color_image.publish(picture)
        at = (_left(number) + 20.0, 120.0)
        seen = detection("person in a red shirt", at=at, size=(40.0, 80.0), header=picture.header)
        self.detections.publish(Detection2DArray(header=picture.header, detections=[seen]))


def _left(number: int) -> int:
    """Where somebody stands in a picture."""
    return 20 + 15 * (number % _PICTURES)


def _picture(number: int) -> Image:
    pixels = np.full((_HEIGHT, _WIDTH, 3), 120, np.uint8)
    pixels[80:160, _left(number) : _left(number) + 40] = (200, 20, 30)
    return image_from_array(pixels, "jpeg", header("camera_optical", 0))
