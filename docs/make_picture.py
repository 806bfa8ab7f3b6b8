"""Makes docs/follow-person.jpg from a run in virtual time: what the camera sees, beside a map of the walk.

python docs/make_picture.py
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dimos_streams.blueprint.load import resolve
from dimos_streams.clock import run_virtual
from dimos_streams.messages.codec import decode
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.robot.rendering.camera import CameraModel, RayCamera
from dimos_streams.robot.rendering.topdown import TopDown
from dimos_streams.robot.simulator import Simulator
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions

INPUT = "look out for a person in a red shirt and follow them"
SECONDS = 32.0
SIZE = (640, 480)
COLOURS = {"base_link": (40, 44, 56), "person_red": (205, 30, 35), "person_green": (30, 140, 60)}


class Watcher:
    """Keeps all ways, and at the end a picture."""

    def __init__(self, run: InProcessRun) -> None:
        self.ways: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.yaw = 0.0
        self.picture: NDArray[np.uint8] | None = None
        run.bus.subscribe("/ground_truth#tf2_msgs.TFMessage", self._on_truth)

    def _on_truth(self, channel: str, data: bytes) -> None:
        for transform in decode(TFMessage, data, channel=channel).transforms:
            where, turn = transform.transform.translation, transform.transform.rotation
            self.ways[transform.child_frame_id].append((where.x, where.y))
            if transform.child_frame_id == "base_link":
                self.yaw = 2 * math.atan2(turn.z, turn.w)


async def walk() -> Watcher:
    """Run the mission and watch it."""
    run = InProcessRun(resolve("follow-person"), RunOptions(bus_url="memq://", seed=7))
    await run.start()
    watcher = Watcher(run)
    assert run.gateway is not None
    await asyncio.sleep(1.0)
    await run.gateway.call("say", {"text": INPUT}, caller="picture")
    await asyncio.sleep(SECONDS)
    robot = run.module("robot")
    assert isinstance(robot, Simulator)
    watcher.picture = RayCamera(robot.world, CameraModel(*SIZE)).render().colour
    await run.stop()
    return watcher


def draw(watcher: Watcher) -> NDArray[np.uint8]:
    """Camera and map side by side, RGB."""
    camera = watcher.picture
    assert camera is not None
    room = TopDown(pixels_per_metre=SIZE[1] / 8.24)
    for name, colour in COLOURS.items():
        if name != "base_link":
            room.track(watcher.ways[name], colour)
    room.track(watcher.ways["base_link"], COLOURS["base_link"])
    room.robot(*watcher.ways["base_link"][-1], watcher.yaw)
    seen = room.picture()
    height = min(len(camera), len(seen))
    return np.ascontiguousarray(np.hstack([camera[:height], np.full((height, 8, 3), 255, np.uint8), seen[:height]]))


def main() -> None:
    import simplejpeg

    picture = draw(run_virtual(walk()))
    target = Path(__file__).with_name("follow-person.jpg")
    target.write_bytes(simplejpeg.encode_jpeg(picture, quality=88))


if __name__ == "__main__":
    main()
