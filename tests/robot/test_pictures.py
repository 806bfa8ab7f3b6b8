"""The room looks as it did: cameras, detectors and what was recorded with them depend on it.

After a change that is meant: ``python -m tests.robot.test_pictures``, and look at ``golden/``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from dimos_streams.robot.rendering.camera import CameraModel, RayCamera
from dimos_streams.robot.simulation.world import World, WorldConfig
from tests.robot.topdown import TopDown

Picture = NDArray[np.uint8]

GOLDEN = Path(__file__).with_name("golden")
VIEWS = (
    (-4.4, -2.4, 0.7),
    (4.3, 2.9, -2.5),
    (-2.2, 0.2, 1.75),
    (2.1, -1.5, -1.65),
    (2.9, -0.8, 0.1),
    (-2.2, -1.9, -2.45),
    (3.1, 3.5, -1.9),
    (-2.0, 0.6, -1.2),
)
"""Where the camera stands; together they show every piece of furniture."""


def room() -> Picture:
    """The room from all sides, and three people in it: one walks, one stands, one sits."""
    world = World(WorldConfig()).load()
    world.step(2.0)
    world.place_person("person_green", 0.3, -2.3, 0.4)
    camera = RayCamera(world, CameraModel(160, 120))
    pictures = []
    for view in VIEWS:
        world.place_robot(*view)
        picture = camera.render().colour
        assert picture is not None
        pictures.append(picture)
    return np.vstack([np.hstack(pictures[row : row + 4]) for row in (0, 4)])


def plan() -> Picture:
    """The map of the room, with the robot and a way on it."""
    drawing = TopDown(pixels_per_metre=30.0)
    way = [(-3.0 + 0.1 * step, -1.2 + 0.4 * math.sin(step / 5)) for step in range(50)]
    drawing.track(way, (205, 30, 35))
    drawing.robot(-2.4, 0.4, 0.9)
    return drawing.picture()


@pytest.mark.parametrize("drawn", [room, plan])
def test_the_room_looks_as_it_did(drawn: Callable[[], Picture]) -> None:
    picture = drawn()
    read = cv2.imread(str(GOLDEN / f"{drawn.__name__}.png"))
    assert read is not None
    before = read[..., ::-1]
    assert picture.shape == before.shape
    apart = np.abs(picture.astype(int) - before.astype(int)).max(axis=2)
    # Of another processor's or version's arithmetic a pixel at an edge may fall to the other side.
    assert (apart > 3).mean() < 0.0002


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for drawn in (room, plan):
        cv2.imwrite(str(GOLDEN / f"{drawn.__name__}.png"), drawn()[..., ::-1])


if __name__ == "__main__":
    main()
