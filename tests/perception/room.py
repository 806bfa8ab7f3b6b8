"""The simulated room as frames, without a bus."""

from __future__ import annotations

from dataclasses import dataclass, field

from dimos_streams.perception.detector import Frame
from dimos_streams.perception.geometry import Camera, Mount
from dimos_streams.robot.camera import MOUNT, CameraModel, RayCamera
from dimos_streams.robot.world import World


@dataclass
class Room:
    """A world and the camera in it."""

    world: World = field(default_factory=lambda: World().load())
    camera: RayCamera = field(default_factory=RayCamera)

    def camera_geometry(self) -> Camera:
        model = CameraModel()
        (cx, cy), f = model.centre, model.focal_length
        return Camera(width=model.width, height=model.height, fx=f, fy=f, cx=cx, cy=cy, mount=Mount.forward(*MOUNT))

    def frame(self) -> Frame:
        """What the camera sees now."""
        seen = self.camera.render(self.world)
        return Frame(
            utime=round(self.world.time * 1e6),
            camera=self.camera_geometry(),
            rgb=seen.colour,
            depth=seen.depth,
            instances=seen.instances,
            labels=self.world.labels(),
        )
