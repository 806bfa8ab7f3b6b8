"""The camera on the robot's mast, drawn by OpenGL (EGL or OSMesa). Optional: `RayCamera` needs no GL."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dimos_streams import errors
from dimos_streams.robot.rendering.camera import CameraModel, RenderedFrame

if TYPE_CHECKING:
    from dimos_streams.robot.simulation.world import World


class GlCamera:
    """A camera that takes the pictures of `RayCamera` by MuJoCo's renderer. Belongs to the thread that made it.

    Raises:
        UserError: there is no OpenGL that works without a display.
    """

    def __init__(self, world: "World", model: CameraModel | None = None) -> None:
        self.model = model or CameraModel()
        self._world = world
        try:
            import mujoco

            self._renderer: Any = mujoco.Renderer(world.model, self.model.height, self.model.width)
        except Exception as error:  # what a missing GL raises depends on the back-end, even at import
            raise errors.UserError(
                f"render 'gl' needs OpenGL without a display ({type(error).__name__}: {error}); run "
                "'pip install pyopengl' and 'apt install libegl1' and set MUJOCO_GL=egl, or use render 'rays'"
            ) from error
        camera = world.model.camera("head").id
        world.model.cam_fovy[camera] = np.degrees(2 * np.arctan(self.model.height / 2 / self.model.focal_length))

    def render(self, colour: bool = True) -> RenderedFrame:
        """Take a picture: colour (if asked for), depth and instances, one pass each."""
        renderer = self._renderer
        renderer.update_scene(self._world.data, camera="head")
        picture = renderer.render().copy() if colour else None
        renderer.enable_depth_rendering()
        depth = renderer.render()[::2, ::2].astype(np.float32)
        renderer.disable_depth_rendering()
        renderer.enable_segmentation_rendering()
        geoms = renderer.render()[::2, ::2, 0].astype(np.int32)
        renderer.disable_segmentation_rendering()
        return RenderedFrame(picture, depth, self._world.instance_of_geom[geoms])

    def close(self) -> None:
        """Give the GL context back. Twice is fine."""
        self._renderer.close()
