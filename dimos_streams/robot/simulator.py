"""The simulator as a module: a world that takes velocities and gives what a robot's sensors give."""

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from dimos_streams import clock, errors
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import CameraInfo, Image, LaserScan
from dimos_streams.messages.std_msgs import Header, String
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.time import header
from dimos_streams.module import ConfigFault, Module, ModuleConfig
from dimos_streams.robot import sensor_messages
from dimos_streams.robot.completeness import until_complete
from dimos_streams.robot.simulation.assembly import SceneFault, assembled
from dimos_streams.robot.simulation.events import SceneEvent
from dimos_streams.robot.simulation.scene import Scene
from dimos_streams.robot.simulation.scene_file import load_scene
from dimos_streams.robot.simulation.settings import (
    FurnitureSetting,
    PeopleSetting,
    PlaceSettings,
    RoomSettings,
    SceneSettings,
)
from dimos_streams.robot.simulation.world import TICK_S, World, WorldConfig
from dimos_streams.robot.velocity import STILL, Velocity, velocity_of
from dimos_streams.streams import In, Out

if TYPE_CHECKING:
    from dimos_streams.robot.rendering.camera import CameraModel, CameraRenderer, RenderedFrame

MAX_MESSAGE_BYTES = 60_000
MAX_LAG_S = 0.2
LABELS_HZ = 1.0


class SimulatorConfig(ModuleConfig):
    """The settings of the simulator: what is simulated, and how often it is measured."""

    scene: str = ""
    """A YAML file, or `package.module:ATTRIBUTE`; empty is the stock room."""
    room: RoomSettings | None = None
    """The room. Here and below, None keeps what the scene has."""
    furniture: FurnitureSetting | None = None
    people: PeopleSetting | None = None
    start_x: float | None = None
    """The robot's x coordinate at the start, in metres."""
    start_y: float | None = None
    """The robot's y coordinate at the start, in metres."""
    start_yaw_deg: float | None = None
    """The robot's direction at the start, in degrees, counter-clockwise from the x axis."""
    events: tuple[SceneEvent, ...] = ()
    """Events besides those of the scene."""
    seed: int | None = Field(None, ge=0)
    """The seed of the people's walks; None takes the run's."""
    cmd_timeout_s: float = Field(0.4, gt=0.0)
    """The age, in seconds, from which a command counts as zero."""
    render: Literal["rays", "gl"] = "rays"
    """How pictures are made: by rays, or by OpenGL."""
    camera_width: int = Field(320, ge=32, le=640, multiple_of=2)
    """The width of pictures, in pixels."""
    camera_height: int = Field(240, ge=24, le=480, multiple_of=2)
    """The height of pictures, in pixels."""
    camera_fov_deg: float = Field(78.0, ge=20.0, le=120.0)
    """The camera's horizontal angle of view, in degrees."""
    jpeg_quality: int = Field(80, ge=1, le=95)
    """The quality of the colour image."""
    camera_hz: float = Field(10.0, gt=0.0, le=1 / TICK_S)
    """The number of pictures a second."""
    lidar_hz: float = Field(10.0, gt=0.0, le=1 / TICK_S)
    """The number of scans a second."""
    odom_hz: float = Field(20.0, gt=0.0, le=1 / TICK_S)
    """The number of odometry messages a second."""
    ground_truth_hz: float = Field(10.0, gt=0.0, le=1 / TICK_S)
    """The number of messages a second with the true places of the robot and the people."""

    @model_validator(mode="after")
    def _depth_fits_a_message(self) -> "SimulatorConfig":
        size = self.camera_width * self.camera_height // 2
        if size > MAX_MESSAGE_BYTES - 1000:
            picture = f"{self.camera_width}x{self.camera_height}"
            raise ValueError(f"depth of {picture} takes {size} bytes, a message holds {MAX_MESSAGE_BYTES}")
        return self


class Simulator(Module):
    """A robot in a furnished room with people. Frames: world = odom, base_link, camera_optical."""

    config: SimulatorConfig
    packages = ("mujoco", "simplejpeg")
    late_imports = ("dimos_streams.robot.rendering.lidar", "dimos_streams.robot.rendering.camera")

    cmd_vel: In[Twist] = In(required=False)

    color_image: Out[Image]
    depth_image: Out[Image]
    instances: Out[Image]
    instance_labels: Out[String]
    camera_info: Out[CameraInfo]
    scan: Out[LaserScan]
    odom: Out[Odometry]
    tf: Out[TFMessage]
    ground_truth: Out[TFMessage]

    @classmethod
    def problems(cls, config: Any) -> Iterator[ConfigFault]:
        """See `Module`: a scene that can't be loaded, and names and places that are not in it."""
        try:
            faults = scene_of(config)[1]
        except errors.UserError as error:
            yield from (ConfigFault(("scene",), line) for line in str(error).splitlines())
        else:
            for fault in faults:
                path = ("start_x",) if fault.path == ("start",) else tuple(map(str, fault.path))
                yield ConfigFault(path, fault.line)

    async def start(self) -> None:
        """Build the world. Raises `UserError` if the scene has faults or MuJoCo or OpenGL is missing."""
        from dimos_streams.robot.rendering.lidar import Lidar

        config = self.config
        seed = self.context.seed if config.seed is None else config.seed
        scene, faults = scene_of(config)
        if faults:
            raise errors.UserError("; ".join(fault.line for fault in faults))
        self.world = World(WorldConfig(scene=scene, seed=seed)).load()
        self.lidar = Lidar()
        self.camera: CameraRenderer = self._open_camera()
        self.pictures_taken = 0
        self.skipped_ticks = 0
        self._camera_frozen = False
        self._events = sorted(scene.events, key=lambda event: event.at_s)
        self._limited_log = LimitedLog(self.log)
        self._schedule: tuple[tuple[float, Callable[[int], None]], ...] = (
            (config.odom_hz, self._publish_odometry),
            (config.lidar_hz, self._publish_scan),
            (config.camera_hz, self._publish_pictures),
            (config.ground_truth_hz, self._publish_ground_truth),
            (LABELS_HZ, self._publish_labels),
        )
        self._seeing = frozenset((self._publish_scan, self._publish_pictures))

    async def run(self) -> None:
        """Keep the world's time with the loop's, from when the robot is complete on.

        A machine that is too slow skips ticks and counts them.
        """
        await until_complete(self)
        started = clock.monotonic()
        tick = 0
        while True:
            tick += 1
            ahead = started + tick * TICK_S - clock.monotonic()
            if ahead < -MAX_LAG_S:
                started -= ahead
                self.skipped_ticks += round(-ahead / TICK_S)
                self._limited_log.warning("too slow: %d ticks skipped so far", self.skipped_ticks)
            await asyncio.sleep(max(0.0, ahead))
            self._tick(tick)

    async def stop(self) -> None:
        """Close the camera."""
        if hasattr(self, "camera"):
            self.camera.close()

    def _tick(self, tick: int) -> None:
        while self._events and self._events[0].at_s <= self.world.time + 1e-9:
            self._happen(self._events.pop(0))
        due = [publish for rate, publish in self._schedule if _is_due(rate, tick)]
        self.world.step(TICK_S, self._command(), seen=not self._seeing.isdisjoint(due))
        now = clock.utime()
        for publish in due:
            publish(now)

    def _command(self) -> Velocity:
        """The command that the base follows now: to stand, once the newest is stale or has a value that is not
        finite."""
        message, age = self.cmd_vel.latest, self.cmd_vel.age()
        if message is None or age is None or age > self.config.cmd_timeout_s:
            return STILL
        return velocity_of(message)

    def _happen(self, event: SceneEvent) -> None:
        if event.hide is not None:
            self.world.hide(event.hide)
        elif event.show is not None:
            self.world.show(event.show)
        elif event.place is not None:
            self.world.place_person(event.place, event.x, event.y, math.radians(event.yaw_deg))
        elif event.release is not None:
            self.world.release_person(event.release)
        elif event.freeze_camera is not None:
            self._camera_frozen = event.freeze_camera

    @cached_property
    def _camera_model(self) -> "CameraModel":
        from dimos_streams.robot.rendering.camera import CameraModel

        config = self.config
        return CameraModel(config.camera_width, config.camera_height, math.radians(config.camera_fov_deg))

    def _open_camera(self) -> "CameraRenderer":
        if self.config.render == "gl":
            from dimos_streams.robot.rendering.camera_gl import GlCamera

            return GlCamera(self.world, self._camera_model)
        from dimos_streams.robot.rendering.camera import RayCamera

        return RayCamera(self.world, self._camera_model)

    def _publish_pictures(self, now: int) -> None:
        if self._camera_frozen:
            return
        stamp = header("camera_optical", now)
        if self.camera_info.wanted:
            self.camera_info.publish(sensor_messages.camera_info(stamp, self._camera_model))
        outputs = (self.color_image, self.depth_image, self.instances)
        if not any(output.wanted for output in outputs):
            return
        frame = self.camera.render(colour=self.color_image.wanted)
        self.pictures_taken += 1
        self._publish_frame(frame, stamp)

    def _publish_frame(self, frame: "RenderedFrame", stamp: Header) -> None:
        if frame.colour is not None:
            quality = self.config.jpeg_quality
            self.color_image.publish(image_from_array(frame.colour, "jpeg", stamp, quality=quality))
        if self.depth_image.wanted:
            millimetres = (frame.depth * 1000.0 + 0.5).clip(0, 65535).astype("uint16")
            self.depth_image.publish(image_from_array(millimetres, "16UC1", stamp))
        if self.instances.wanted:
            self.instances.publish(image_from_array(frame.instances, "mono8", stamp))

    def _publish_labels(self, now: int) -> None:
        labels = {str(instance): text for instance, text in self.world.labels().items()}
        self.instance_labels.publish(String(data=json.dumps(labels)))

    def _publish_scan(self, now: int) -> None:
        if self.scan.wanted:
            ranges = self.lidar.scan(self.world)
            self.scan.publish(sensor_messages.laser_scan(now, self.lidar.model, ranges, self.config.lidar_hz))

    def _publish_odometry(self, now: int) -> None:
        pose = self.world.pose()
        self.odom.publish(sensor_messages.odometry(now, pose, self.world.twist()))
        if self.tf.wanted:
            self.tf.publish(sensor_messages.frames(now, pose))

    def _publish_ground_truth(self, now: int) -> None:
        if self.ground_truth.wanted:
            people = self.world.people()
            self.ground_truth.publish(sensor_messages.ground_truth(now, self.world.pose(), people))


def _is_due(rate: float, tick: int) -> bool:
    """Return whether something that comes `rate` times a second comes at this tick."""
    per_tick = rate * TICK_S
    return math.floor(tick * per_tick + 1e-9) > math.floor((tick - 1) * per_tick + 1e-9)


def scene_of(config: SimulatorConfig) -> tuple[Scene, list[SceneFault]]:
    """The simulated scene, with the faults of the settings. Raises `UserError` for a scene that can't be loaded."""
    base = load_scene(config.scene)
    start = PlaceSettings(
        x=base.start.x if config.start_x is None else config.start_x,
        y=base.start.y if config.start_y is None else config.start_y,
        yaw_deg=math.degrees(base.start.yaw) if config.start_yaw_deg is None else config.start_yaw_deg,
    )
    settings = SceneSettings.model_construct(
        room=config.room, furniture=config.furniture, people=config.people, start=start, events=config.events
    )
    return assembled(settings, base)
