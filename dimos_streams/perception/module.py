"""The module that says what the camera sees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.base import Message
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import OdometryFromPoses, pose_fault
from dimos_streams.messages.sensor_msgs import CameraInfo, Image
from dimos_streams.messages.std_msgs import String
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.time import utime_of
from dimos_streams.messages.timeline import Timeline
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.module import ConfigFault, Module, ModuleConfig, RunContext
from dimos_streams.perception.choice import backend_of, faults_of
from dimos_streams.perception.config import DetectorConfig
from dimos_streams.perception.newest import Newest
from dimos_streams.perception.pairing import Pairing
from dimos_streams.perception.wanted import Wanted
from dimos_streams.streams import In, Out

if TYPE_CHECKING:
    from dimos_streams.perception.detector import Detection, Frame
    from dimos_streams.perception.pipeline import Pipeline, Shot

_REPORTED_EVERY_S = 1.0

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class DetectorStatistics:
    """The counts of frames since the start."""

    frames: int
    """Frames whose detections were published."""
    failed: int
    """Frames that could not be judged; nothing was published for them."""
    skipped: int
    """Complete frames that a newer one overtook."""
    incomplete: int
    """Instants of which an image never came."""
    misstamped: int
    """The number of complete frames with an impossible stamp."""


class PersonDetector(Module):
    """Publishes what is seen in each frame, with identities that last; an empty array says that nobody is.

    A frame that can't be judged is counted and publishes nothing, so that consumers can distinguish "nobody" from "no
    idea". The boxes are in pixels of the colour image, the points in `base_frame`. The segmentation backend has
    no use for the colour image: leave it unwired, and it need not be rendered."""

    late_imports = ("numpy.ma", "dimos_streams.perception.pipeline", "dimos_streams.perception.backends.segmentation")

    stamped_as: ClassVar[Mapping[str, tuple[str, ...]]] = {"detections": ("instances", "color_image", "depth_image")}

    config: DetectorConfig
    color_image: In[Image] = In(required=False)
    depth_image: In[Image] = In(required=False)
    instances: In[Image] = In(required=False)
    instance_labels: In[String] = In(required=False)
    camera_info: In[CameraInfo]
    odom: In[Odometry] = In(required=False, also=OdometryFromPoses, fault=pose_fault, fresh=True)
    tf: In[TFMessage] = In(required=False)
    wanted_descriptions: In[String] = In(required=False)
    detections: Out[Detection2DArray]

    _slow_report: asyncio.TimerHandle
    """The timer after which the health says how long the backend has been at a picture."""

    def __init__(
        self,
        config: ModuleConfig | Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        context: RunContext | None = None,
    ) -> None:
        super().__init__(config, name=name, context=context)
        self._pipeline: Pipeline | None = None
        self._blocks = False
        self._pairing: Pairing[Image] = Pairing([])
        self._shots: Newest[Shot] = Newest()
        self._timeline = Timeline("the camera")
        self._wanted = Wanted()
        self._published_frames = self._failed_frames = 0
        self._limited = LimitedLog(self.log)

    @classmethod
    def problems(cls, config: Any) -> Iterator[ConfigFault]:
        """See `Module`: a backend that there is not, or that lacks a package, a file or a setting."""
        return faults_of(config)

    @classmethod
    def needed_inputs(cls, config: Any) -> tuple[str, ...]:
        """See `Module`: what the backend looks at."""
        return backend_of(config).inputs

    async def start(self) -> None:
        """Start the backend. Raises UserError when it lacks an input, a package or a setting."""
        from dimos_streams.perception.pipeline import Pipeline

        backend = backend_of(self.config)
        for needed in backend.inputs:
            if not getattr(self, needed).wired:
                raise UserError(f"module {self.name!r}: backend {self.config.backend!r} needs the input {needed!r}")
        self._blocks = backend.blocks
        pipeline = self._pipeline = Pipeline(
            self.config, self.clock_ahead(getattr(self, backend.inputs[0]), self.odom)
        )
        parts = [part for part in (backend.inputs[0], "depth_image") if getattr(self, part).wired]
        self._pairing = Pairing(parts)
        for part in parts:
            getattr(self, part).on_message(partial(self._on_image, part))
        self.tf.on_message(pipeline.learn_frames)
        self.instance_labels.on_message(self._tolerant(pipeline.learn_labels))
        self.odom.on_message(self._tolerant(pipeline.learn_pose))
        self.wanted_descriptions.on_message(self._tolerant(lambda message: self._wanted.add(message.data)))

    async def run(self) -> None:
        """Judges the newest frame, again and again."""
        assert self._pipeline is not None
        while True:
            shot = await self._shots.take()
            began = clock.monotonic()
            await self._look(self._pipeline, shot)
            await asyncio.sleep(max(0.0, self.config.period_s - (clock.monotonic() - began)))

    async def stop(self) -> None:
        """Close the backend, also while it is busy."""
        if self._pipeline is not None:
            self._pipeline.close()

    def on_settings(self, changed: frozenset[str]) -> None:
        """See Module."""
        if self._pipeline is not None:
            self._pipeline.use(self.config)

    def statistics(self) -> DetectorStatistics:
        """The counts of what has become of the frames so far."""
        return DetectorStatistics(
            self._published_frames,
            self._failed_frames,
            self._shots.skipped,
            self._pairing.incomplete,
            self._timeline.ignored,
        )

    def _on_image(self, part: str, image: Image) -> None:
        from dimos_streams.perception.pipeline import Shot

        stamp, now = utime_of(image.header), clock.monotonic()
        complete = self._pairing.add(part, stamp, image)
        if complete is None:
            return
        instant = self._timeline.take(stamp, now)
        if instant is not None:
            self._shots.put(Shot(complete, instant, now))

    def _tolerant(self, handle: Callable[[M], None]) -> Callable[[M], None]:
        """A handler that logs damaged messages, once a second at most, and leaves them out."""

        def handler(message: M) -> None:
            try:
                handle(message)
            except MessageError as error:
                self._limited.warning("skipped: %s", error)

        return handler

    async def _look(self, pipeline: Pipeline, shot: Shot) -> None:
        """Publishes what one frame shows, unless it can't be judged."""
        from dimos_streams.perception.detector import DetectorError

        began = clock.monotonic()
        try:
            frame = pipeline.frame(shot.images, self.camera_info.latest)
            if frame is None:
                return
            if self._blocks:
                found = await self._detected(pipeline, frame)
            else:
                found = pipeline.detect(frame, ())
            self.detections.publish(pipeline.message(shot, frame, found))
        except (DetectorError, MessageError) as error:
            self._count_failure(str(error))
            self._limited.warning("a frame was left out: %s", error)
        except Exception as error:  # a bug in a backend or the tracker must not blind the robot for good
            self._count_failure(repr(error))  # whose text alone may say nothing
            self._limited.exception("a frame was left out")
        else:
            self._published_frames += 1
            took_s = clock.monotonic() - began
            slow = took_s > self.config.slow_after_s
            self.health = f"the detector takes {took_s:.1f} s a picture" if slow else "ok"

    async def _detected(self, pipeline: Pipeline, frame: Frame) -> list[Detection]:
        """Returns what a backend that blocks sees. If that takes long, the health says so meanwhile: it may hang."""
        self._report_at(clock.monotonic(), self.config.slow_after_s)
        try:
            return await self.run_blocking(pipeline.detect, frame, self._wanted.now())
        finally:
            self._slow_report.cancel()

    def _report_at(self, began: float, after_s: float) -> None:
        def report() -> None:
            self.health = f"the detector has been at one picture for {clock.monotonic() - began:.0f} s"
            self._report_at(began, _REPORTED_EVERY_S)

        self._slow_report = asyncio.get_running_loop().call_later(after_s, report)

    def _count_failure(self, why: str) -> None:
        self._failed_frames += 1
        self.health = f"the last frame could not be judged: {why}"
