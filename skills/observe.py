"""The module that describes what the camera sees now."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dimos_streams import clock
from dimos_streams.common.readable.listed import listed
from dimos_streams.errors import MessageError, SkillError
from dimos_streams.live_settings import Live
from dimos_streams.messages.image import JPEG, image_from_array, rgb_from_image
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import OdometryFromPoses, pose_fault
from dimos_streams.messages.sensor_msgs import CameraInfo, Image
from dimos_streams.messages.time import utime_of
from dimos_streams.messages.timeline import Timeline
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.module.kept_pictures import keep_picture
from dimos_streams.skill import skill
from dimos_streams.skills.moving.planar import pose_of
from dimos_streams.skills.moving.pose_history import PoseHistory
from dimos_streams.skills.seeing.frames import DetectionFrame, fresh_frames
from dimos_streams.skills.seeing.labels import watch_labels
from dimos_streams.skills.seeing.sighting import Lens, Sighting, lens_fault, sightings_of
from dimos_streams.streams import In, Reader


class ObserveConfig(ModuleConfig):
    """Settings for a look."""

    wait_s: Annotated[float, Live] = Field(2.0, gt=0.0)
    """The time, in seconds, to wait for a frame that is newer than the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenThing:
    """One thing in view."""

    label: str
    score: float
    track: str
    distance_m: float | None
    """Metres to it, or None if depth is unknown."""
    bearing_deg: float
    """The direction from straight ahead, positive to the left, negative to the right."""
    bbox: tuple[float, float, float, float]
    """Left, top, right, bottom in pixels of the colour image."""

    def __str__(self) -> str:
        distance = "" if self.distance_m is None else f", {self.distance_m:.1f} m ahead"
        return f"a {self.label}{distance}, {_direction(self.bearing_deg)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPose:
    """The robot's pose in the odom frame."""

    x: float
    y: float
    yaw_deg: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The persons and things that are seen at one instant."""

    utime: int
    """The time at which the picture was taken, by the camera's clock: µs since the Unix epoch, if that clock is
    right."""
    things: tuple[SeenThing, ...]
    """The nearest first."""
    robot: ObservedPose | None
    picture: str | None
    """The path of a JPEG file, or None if there is no picture or nowhere to put it."""

    def __str__(self) -> str:
        return f"I see {listed([str(thing) for thing in self.things])}" if self.things else "I see nobody"


class Observe(Module):
    """Describes what a detector sees, with a picture if there is a camera and the run has a directory."""

    config: ObserveConfig
    detections: In[Detection2DArray]
    color_image: In[Image] = In(required=False, on_demand=True)
    odom: In[Odometry] = In(required=False, also=OdometryFromPoses, fault=pose_fault, fresh=True)
    camera_info: In[CameraInfo] = In(required=False, fault=lens_fault)

    @classmethod
    def longest_gaps(cls, config: ObserveConfig) -> Mapping[str, float]:
        """See ``Module``."""
        return {"detections": config.wait_s}

    async def start(self) -> None:
        """Listen to the odometry."""
        self.poses = PoseHistory(self.clock_ahead(self.detections, self.odom))
        self.odom.on_message(self.poses.add)
        watch_labels(self, self.detections)

    @skill(tags={"safe", "sensing"}, concurrent=True, read_only=True, polling=True)
    async def observe(self) -> Observation:
        """Look, and tell who and what is in view now: how they look, how far away, and in which direction."""
        with self.color_image.listening(), self._pictures() as pictures:
            frame = await self._fresh_frame()
            picture = await self._keep_picture(pictures)
        lens = Lens.of(self.camera_info.latest)
        things = [_seen(sighting, lens) for sighting in sightings_of(frame.message)]
        odometry = self.odom.latest
        return Observation(
            utime=frame.stamp,
            things=tuple(sorted(things, key=_nearness)),
            robot=None if odometry is None else _robot_pose(odometry),
            picture=picture,
        )

    async def _fresh_frame(self) -> DetectionFrame:
        """The first frame taken after now, else the newest that comes within the bound. Raises ``SkillError``."""
        called, wait_s, newest = clock.monotonic(), self.config.wait_s, None
        timeline = self._timeline_so_far()
        begun = timeline.now(called)
        # When the time is over, a picture from before the call is better than none: the detector is slow.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s), aclosing(fresh_frames(self.detections, wait_s, timeline)) as frames:
                async for frame in frames:
                    newest = frame or newest
                    if frame is not None and self._is_taken_since(called, begun, frame):
                        break
        if newest is None:
            raise SkillError(f"I can't see: the detector has sent no new frame for {wait_s:g} s")
        return newest

    def _timeline_so_far(self) -> Timeline:
        timeline, latest, age = Timeline("detections"), self.detections.latest, self.detections.age()
        if latest is not None and age is not None:
            timeline.take(utime_of(latest.header), clock.monotonic() - age)
        return timeline

    def _is_taken_since(self, called: float, begun: int | None, frame: DetectionFrame) -> bool:
        """Return whether a frame was taken since the call. ``begun`` is the detector's instant of the call, or None
        if nothing had come from it."""
        age_us = self.poses.age_us(frame.stamp, frame.arrived)
        if age_us is not None:
            return age_us <= round((frame.arrived - called) * 1e6)
        return begun is not None and frame.instant >= begun

    @contextlib.contextmanager
    def _pictures(self) -> Iterator[Reader[Image]]:
        """The pictures from now on, of one call: several may look at once."""
        reader = self.color_image.reader()
        try:
            yield reader
        finally:
            self.color_image.release(reader)

    async def _keep_picture(self, pictures: Reader[Image]) -> str | None:
        directory = self.context.run_dir
        if directory is None or not self.color_image.wired:
            return None
        try:
            async with asyncio.timeout(self.config.wait_s):
                image = await pictures.next()
        except TimeoutError:  # a camera without pictures does not keep anybody from describing what is seen
            self.log.warning("no picture came within %g s", self.config.wait_s)
            return None
        name = f"{self.name.replace('/', '_')}-{utime_of(image.header)}.jpg"
        try:
            return str(await self.run_blocking(_keep, directory, name, image))
        except (MessageError, OSError) as error:  # a full disk keeps nobody from describing what is seen
            self.log.warning("the picture of %s can't be kept: %s", self.color_image.channel, error)
            return None


def _seen(sighting: Sighting, lens: Lens) -> SeenThing:
    left, top, right, bottom = (round(value, 1) for value in sighting.box)
    return SeenThing(
        label=sighting.label,
        score=round(sighting.labels[0][1], 3),
        track=sighting.id,
        distance_m=None if sighting.point is None else round(abs(sighting.point), 2),
        bearing_deg=round(math.degrees(sighting.bearing(lens)), 1),
        bbox=(left, top, right, bottom),
    )


def _nearness(thing: SeenThing) -> float:
    """Return the metres to a thing, by which things are sorted; those of unknown distance come last."""
    return math.inf if thing.distance_m is None else thing.distance_m


def _direction(bearing_deg: float) -> str:
    if abs(bearing_deg) < 3.0:
        return "straight ahead"
    return f"{abs(bearing_deg):.0f} deg {'left' if bearing_deg > 0 else 'right'}"


def _robot_pose(odometry: Odometry) -> ObservedPose:
    pose = pose_of(odometry)
    x, y, yaw = pose.position.real, pose.position.imag, math.degrees(pose.yaw)
    return ObservedPose(x=round(x, 2), y=round(y, 2), yaw_deg=round(yaw, 1))


def _keep(directory: Path, name: str, image: Image) -> Path:
    """Keep an image as a JPEG. Raises ``MessageError`` if it is damaged or claims too much, and ``OSError``."""
    if image.encoding != JPEG:
        image = image_from_array(rgb_from_image(image), JPEG, image.header)
    return keep_picture(directory, name, bytes(image.data))
