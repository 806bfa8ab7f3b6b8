"""Messages as detectors and odometry send them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from dimos_streams import clock
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseWithCovariance, Quaternion
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.time import header
from dimos_streams.messages.vision_msgs import Detection2D, Detection2DArray
from dimos_streams.testing import ModuleHarness
from tests.detected import detection

RED = "person in a red shirt and blue trousers"
GREEN = "person in a green shirt and black trousers"
FRAME_S = 0.1


@dataclass(frozen=True)
class Seen:
    """Somebody in the picture. ``at`` is x forward, y left in base_link, None for unknown depth."""

    label: str = RED
    at: tuple[float, float] | None = (2.0, 0.0)
    id: str = "1"
    score: float = 0.9
    column: float = 160.0

    def message(self) -> Detection2D:
        x, y = self.at or (math.nan, math.nan)
        place = Point(x=x, y=y, z=0.9)
        return detection(self.label, id=self.id, at=(self.column, 120.0), place=place, score=self.score)


@dataclass
class StampClock:
    """The clock of another machine."""

    off_us: int = 0
    """By how much it is ahead of this one's."""

    def utime(self) -> int:
        return clock.utime() + self.off_us


def frame(*seen: Seen, utime: int | None = None) -> Detection2DArray:
    """The detections of one picture; taken now, if nothing else is said."""
    stamp = header("base_link", clock.utime() if utime is None else utime)
    return Detection2DArray(header=stamp, detections=[one.message() for one in seen])


def odometry(x: float = 0.0, y: float = 0.0, yaw: float = 0.0, utime: int | None = None) -> Odometry:
    """The robot's pose; now, if nothing else is said."""
    turn = Quaternion(z=math.sin(yaw / 2), w=math.cos(yaw / 2))
    pose = PoseWithCovariance(pose=Pose(position=Point(x=x, y=y), orientation=turn))
    return Odometry(header=header("odom", clock.utime() if utime is None else utime), pose=pose)


@dataclass
class Camera:
    """Feeds a frame every 0.1 s, of whoever is in view."""

    harness: ModuleHarness
    view: Sequence[Seen] = ()
    state: Literal["live", "repeating", "silent"] = "live"
    """A camera is frozen when it repeats its last picture, or sends none."""
    clock: StampClock = field(default_factory=StampClock)
    _stamp: int = field(default=0, init=False)

    async def run(self) -> None:
        while True:
            if self.state == "live":
                self._stamp = self.clock.utime()
            if self.state != "silent":
                self.harness.feed("detections", frame(*self.view, utime=self._stamp))
            await asyncio.sleep(FRAME_S)
