import math
from dataclasses import replace

import numpy as np
import pytest

from dimos_streams.messages.planar import PlanarPose
from dimos_streams.robot.rendering.lidar import Lidar
from dimos_streams.robot.simulation.scene import STOCK_SCENE
from dimos_streams.robot.simulation.world import World, WorldConfig


def range_at(ranges: np.ndarray[tuple[int], np.dtype[np.float32]], angle: float) -> float:
    return float(ranges[round((angle + math.pi) / math.tau * len(ranges)) % len(ranges)])


@pytest.mark.parametrize("yaw", [0.0, math.pi / 2])
def test_ranges_to_the_walls(yaw: float) -> None:
    world = World(WorldConfig(scene=replace(STOCK_SCENE, people=(), start=PlanarPose(-1.5, -1.0, yaw)))).load()
    ranges = Lidar().scan(world)
    assert ranges.shape == (360,)
    assert range_at(ranges, -math.pi - yaw) == pytest.approx(STOCK_SCENE.room.length / 2 - 1.5, abs=0.01)
    assert range_at(ranges, -math.pi / 2 - yaw) == pytest.approx(STOCK_SCENE.room.width / 2 - 1.0, abs=0.06)
    assert np.isfinite(ranges).all()


def test_legs_are_seen() -> None:
    world = World(WorldConfig(scene=replace(STOCK_SCENE, start=PlanarPose(0.0, 0.0, 0.0)))).load()
    world.place_person("person_red", 1.5, 0.0)
    ahead = Lidar().scan(world)[170:191]
    assert 1.3 < ahead.min() < 1.5
    world.hide("person_red")
    assert Lidar().scan(world)[170:191].min() > 2.5
