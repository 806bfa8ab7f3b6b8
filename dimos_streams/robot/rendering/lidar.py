"""The planar range finder on the robot's base."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from dimos_streams.robot.simulation.mjcf import GROUP_HULL, LIDAR_HEIGHT

if TYPE_CHECKING:
    from dimos_streams.robot.simulation.world import World


@dataclass(frozen=True, slots=True)
class LidarModel:
    """Rays evenly around the base, counter-clockwise, the first one straight backwards (-pi)."""

    rays: int = 360
    range_min: float = 0.05
    range_max: float = 12.0

    @property
    def increment(self) -> float:
        """Angle between two rays, in radians."""
        return math.tau / self.rays


class Lidar:
    """Measures ranges at `LIDAR_HEIGHT`, about the middle of the base."""

    def __init__(self) -> None:
        self.model = LidarModel()
        self._angles = -math.pi + self.model.increment * np.arange(self.model.rays)
        self._groups = np.ones(6, dtype=np.uint8)
        self._groups[GROUP_HULL] = 0

    def scan(self, world: "World") -> NDArray[np.float32]:
        """Ranges in metres, inf where nothing is in reach."""
        base, count = world.pose(), self.model.rays
        angles = self._angles + base.yaw
        directions = np.stack([np.cos(angles), np.sin(angles), np.zeros(count)], axis=1)
        origin = np.array([base.x, base.y, LIDAR_HEIGHT])
        geoms = np.empty(count, dtype=np.int32)
        ranges = np.empty(count)
        mujoco.mj_multiRay(
            world.model,
            world.data,
            origin,
            directions.ravel(),
            self._groups,
            True,
            world.base_body,
            geoms,
            ranges,
            None,
            count,
            self.model.range_max,
        )
        missed = (geoms < 0) | (ranges < self.model.range_min) | (ranges > self.model.range_max)
        return np.where(missed, np.inf, ranges).astype(np.float32)
