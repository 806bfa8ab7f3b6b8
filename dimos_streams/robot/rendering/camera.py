"""The camera on the robot's mast: colour, depth and instances from one set of rays.

Frame of the pixels: camera_optical, x right, y down, z forward, at `MOUNT` in base_link. Needs no GL.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dimos_streams.messages.planar import PlanarPose
from dimos_streams.robot.rendering.raycast import RayCaster
from dimos_streams.robot.rendering.shading import Shading
from dimos_streams.robot.simulation.mjcf import CAMERA_FORWARD, CAMERA_HEIGHT

if TYPE_CHECKING:
    from dimos_streams.robot.simulation.world import World

Floats = NDArray[np.floating[Any]]

MOUNT = (CAMERA_FORWARD, 0.0, CAMERA_HEIGHT)
SUN = (-0.45, 0.4, 0.8)


@dataclass(frozen=True, slots=True)
class CameraModel:
    """Intrinsics of a pinhole camera with square pixels. Pixel (0, 0) has its centre at (0, 0)."""

    width: int = 320
    height: int = 240
    horizontal_fov: float = math.radians(78.0)

    @property
    def focal_length(self) -> float:
        """The focal length, in pixels."""
        return self.width / 2 / math.tan(self.horizontal_fov / 2)

    @property
    def centre(self) -> tuple[float, float]:
        """The principal point, in pixels."""
        return (self.width - 1) / 2, (self.height - 1) / 2


@dataclass(frozen=True, slots=True)
class RenderedFrame:
    """The picture of the camera in one instant.

    `colour` is RGB uint8 (height, width, 3), or None if it was not asked for. `depth` (metres along the
    optical axis, float32) and `instances` (uint8 ids, 0 is background) have every second pixel of every
    second row.
    """

    colour: NDArray[np.uint8] | None
    depth: Floats
    instances: NDArray[np.uint8]


class CameraRenderer(Protocol):
    """Anything that takes pictures of its world from the robot's mast."""

    model: CameraModel

    def render(self, colour: bool = True) -> RenderedFrame: ...

    def close(self) -> None: ...


class RayCamera:
    """A camera that casts rays on the processor. The world must be loaded.

    It takes 2 to 5 ms for 320 x 240, and a quarter of that without colour or while the robot stands.
    """

    def __init__(self, world: "World", model: CameraModel | None = None) -> None:
        self.model = model or CameraModel()
        self._world = world
        (cx, cy), f = self.model.centre, self.model.focal_length
        self._u = ((np.arange(self.model.width) - cx) / f).astype(np.float32)
        self._v = ((np.arange(self.model.height) - cy) / f).astype(np.float32)
        self._caster = RayCaster(world.model, world.scene.room, world.base_body, SUN)
        palette = world.model.geom_rgba[:, :3].astype(np.float32)
        self._shading = Shading(world.scene, palette, int(world.model.geom("floor").id), self._u, self._v)

    def render(self, colour: bool = True) -> RenderedFrame:
        """Take a picture. Without colour only every second ray of every second row is cast."""
        stride = 1 if colour else 2
        eye = _eye(self._world.pose())
        u, v = self._u[::stride], self._v[::stride]
        at = np.array([eye.x, eye.y, MOUNT[2]])
        hits = self._caster.cast(self._world.data, at, eye.yaw, u, v, lit=colour)
        sparse = slice(None, None, 2 // stride)
        instances = self._world.instance_of_geom[hits.geom[sparse, sparse]]
        picture = self._shading.picture(hits, eye, self._world.people().values()) if colour else None
        return RenderedFrame(picture, hits.depth[sparse, sparse].copy(), instances)

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""


def _eye(base: PlanarPose) -> PlanarPose:
    """Return the camera's place in the world; it is `MOUNT[2]` above the floor."""
    cos, sin = math.cos(base.yaw), math.sin(base.yaw)
    return PlanarPose(base.x + cos * MOUNT[0], base.y + sin * MOUNT[0], base.yaw)
