"""The way from the messages of one instant to the message that says what they show."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from dimos_streams import clock
from dimos_streams.errors import MessageError
from dimos_streams.messages.detections import MAX_LABEL
from dimos_streams.messages.image import metres_from_image, rgb_from_image
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.messages.sensor_msgs import CameraInfo, Image
from dimos_streams.messages.std_msgs import String
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.time import header, utime_of
from dimos_streams.messages.timeline import History
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.perception import wire
from dimos_streams.perception.choice import backend_of
from dimos_streams.perception.config import DetectorConfig
from dimos_streams.perception.detector import Detection, DetectorError, Frame
from dimos_streams.perception.geometry import Mount
from dimos_streams.perception.mount import MountFinder
from dimos_streams.perception.tracking import Tracker

MAX_DETECTIONS = 100
"""The largest number of things of one frame that are kept: finding their tracks takes time by the square of it."""


@dataclass(frozen=True, slots=True)
class Shot:
    """The images of one instant, by their topics' names."""

    images: Mapping[str, Image]
    instant: int
    """The instant of the camera's time, µs; see ``Timeline``."""
    arrived: float
    """The time of its arrival on the loop's clock, seconds."""


class Pipeline:
    """The state of detection: camera, labels and poses, the backend and the tracker.

    The constructor raises UserError when the backend lacks a package or a setting."""

    def __init__(self, config: DetectorConfig, camera_ahead: Callable[[], int | None]) -> None:
        """``camera_ahead`` tells how far the camera's clock is ahead of odometry's, µs; None where nobody knows."""
        self._config = config
        backend = backend_of(config)
        self._detector = backend.make(config)
        self._tracker = Tracker(config.tracking or backend.tracking)
        self._mounts = MountFinder(config.base_frame)
        self._labels: dict[int, str] | None = None
        self._poses: History[PlanarPose] = History("odometry", other_ahead=camera_ahead)

    def learn_labels(self, message: String) -> None:
        """Learn the names of the instances. Raises MessageError, and keeps what it knew, for damaged ones."""
        self._labels = wire.labels_from(message.data)

    def learn_pose(self, message: Odometry) -> None:
        """Learn the robot's pose. Raises MessageError for a pose that is no place."""
        self._poses.add(utime_of(message.header), clock.monotonic(), wire.pose_from(message))

    def learn_frames(self, message: TFMessage) -> None:
        """Learn the camera's place on the robot."""
        self._mounts.add(message)

    def frame(self, images: Mapping[str, Image], info: CameraInfo | None) -> Frame | None:
        """Return the frame that images (by their topics' names) make, or None while camera or labels are unknown.

        Raises MessageError for damaged images, DetectorError for a colour image of another size than the
        camera's.
        """
        if info is None or (self._labels is None and "instances" in images):
            return None
        colour = images.get("color_image")
        stamp = next(iter(images.values())).header
        camera = wire.camera_from(info, self._mount(info.header.frame_id or stamp.frame_id))
        if colour is not None and (colour.width, colour.height) != (camera.width, camera.height):
            raise DetectorError(
                f"the colour image is {colour.width}x{colour.height} pixels, "
                f"but camera_info is for {camera.width}x{camera.height}"
            )
        return Frame(
            utime=utime_of(stamp),
            camera=camera,
            rgb=_pixels(images, "color_image", rgb_from_image),
            depth=_pixels(images, "depth_image", metres_from_image),
            instances=_pixels(images, "instances", wire.instances_from),
            labels=self._labels or {},
        )

    def detect(self, frame: Frame, wanted: Sequence[str]) -> list[Detection]:
        """The detections of the backend, from the configured score on, with labels of ``MAX_LABEL`` characters at
        most. Of more than ``MAX_DETECTIONS`` those with the best scores.

        May block; raises what the backend raises."""
        found = self._detector.detect(frame, wanted)
        sure = [_with_short_labels(detection) for detection in found if detection.score >= self._config.min_score]
        if len(sure) <= MAX_DETECTIONS:
            return sure
        return heapq.nlargest(MAX_DETECTIONS, sure, key=lambda detection: detection.score)

    def use(self, config: DetectorConfig) -> None:
        """Go by another config in what is live of it."""
        self._config = config

    def message(self, shot: Shot, frame: Frame, found: Sequence[Detection]) -> Detection2DArray:
        """The detections with their identities, stamped as the images are."""
        pose = self._poses.at(frame.utime, shot.arrived)
        tracked = self._tracker.update(found, shot.instant, pose)
        return wire.detections_message(header(self._config.base_frame, frame.utime), tracked)

    def close(self) -> None:
        """Close the backend, also while it is busy. Closing twice is fine."""
        self._detector.close()

    def _mount(self, camera_frame: str) -> Mount:
        at = self._config.mount
        try:
            found = self._mounts.find(camera_frame)
        except ValueError as error:
            raise MessageError("tf", TFMessage.msg_name, str(error)) from error
        return found or Mount.forward(at.x, at.y, at.z, at.pitch)


def _with_short_labels(detection: Detection) -> Detection:
    further = tuple((label[:MAX_LABEL], score) for label, score in detection.further_labels)
    return replace(detection, label=detection.label[:MAX_LABEL], further_labels=further)


def _pixels(images: Mapping[str, Image], part: str, read: Callable[[Image], NDArray[Any]]) -> NDArray[Any] | None:
    """Return the pixels of one of the images, or None if it is not there. Raises MessageError that names it."""
    if part not in images:
        return None
    try:
        return read(images[part])
    except MessageError as error:
        raise MessageError(part, error.type_name, error.why) from error
