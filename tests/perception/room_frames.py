"""The simulated room as frames, without a bus."""

from __future__ import annotations

from dimos_streams.perception.detector import Frame
from dimos_streams.perception.geometry import Camera, Mount
from dimos_streams.robot.rendering.camera import MOUNT, CameraModel, RayCamera
from dimos_streams.robot.simulation.world import World


class Room:
    """A world and the camera in it."""

    def __init__(self) -> None:
        self.world = World().load()
        self.camera = RayCamera(self.world)

    def camera_geometry(self) -> Camera:
        model = CameraModel()
        (cx, cy), f = model.centre, model.focal_length
        return Camera(width=model.width, height=model.height, fx=f, fy=f, cx=cx, cy=cy, mount=Mount.forward(*MOUNT))

    def frame(self) -> Frame:
        """The picture that the camera sees now."""
        seen = self.camera.render()
        return Frame(
            utime=round(self.world.time * 1e6),
            camera=self.camera_geometry(),
            rgb=seen.colour,
            depth=seen.depth,
            instances=seen.instances,
            labels=self.world.labels(),
        )
