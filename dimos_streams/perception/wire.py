"""Conversions between messages and the values that detectors work with."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from dimos_streams.common.json.reading import well_formed_json
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseWithCovariance
from dimos_streams.messages.image import array_from_image
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import pose_fault
from dimos_streams.messages.planar import PlanarPose, planar_pose
from dimos_streams.messages.sensor_msgs import CameraInfo, Image
from dimos_streams.messages.std_msgs import Header
from dimos_streams.messages.vision_msgs import (
    BoundingBox2D,
    Detection2D,
    Detection2DArray,
    ObjectHypothesis,
    ObjectHypothesisWithPose,
    Point2D,
    Pose2D,
)
from dimos_streams.perception.geometry import Camera, Mount
from dimos_streams.perception.tracking import Tracked

_LABELS = TypeAdapter(dict[int, str])


def camera_from(info: CameraInfo, mount: Mount) -> Camera:
    """The camera that a CameraInfo describes. Raises MessageError for one that can't project anything."""
    is_sound = len(info.K) == 9 and all(map(math.isfinite, info.K)) and info.K[0] > 0 and info.K[4] > 0
    if info.width <= 0 or info.height <= 0 or not is_sound:
        raise _bad(CameraInfo, f"{info.width}x{info.height} pixels with K {tuple(info.K)!r}")
    fx, _, cx, _, fy, cy, *_ = (float(value) for value in info.K)
    return Camera(width=info.width, height=info.height, fx=fx, fy=fy, cx=cx, cy=cy, mount=mount)


def instances_from(image: Image) -> NDArray[np.uint8]:
    """Ids of instances. Raises MessageError for any other kind of image."""
    pixels = array_from_image(image)
    if pixels.dtype != "uint8" or pixels.ndim != 2:
        raise _bad(Image, f"encoding {image.encoding!r} is no picture of instances (that is mono8)")
    return pixels


def labels_from(text: str) -> dict[int, str]:
    """Labels by the instances' ids, from a JSON object. Raises MessageError for anything else."""
    try:
        return _LABELS.validate_json(well_formed_json(text))
    except ValidationError as error:
        raise MessageError(
            "instance_labels", "std_msgs.String", f"no JSON object of labels: {text[:80]!r}"
        ) from error


def pose_from(odometry: Odometry) -> PlanarPose:
    """Position and heading of the robot. Raises MessageError for a pose that no robot has."""
    pose = planar_pose(odometry.pose.pose)
    if pose is None:
        raise _bad(Odometry, pose_fault(odometry))
    return pose


def detections_message(header: Header, seen: Sequence[Tracked]) -> Detection2DArray:
    """Return the message of all things seen in one frame; without any it says that nothing is there."""
    return Detection2DArray(header=header, detections=[_detection(header, tracked) for tracked in seen])


def _detection(header: Header, tracked: Tracked) -> Detection2D:
    detection = tracked.detection
    x, y, z = detection.point or (math.nan, math.nan, math.nan)
    pose = PoseWithCovariance(pose=Pose(position=Point(x=x, y=y, z=z)))
    # What the track is called mostly comes first: a noisy detector's word for one frame would flicker.
    labels = dict.fromkeys([tracked.label], detection.score)
    for label, score in ((detection.label, detection.score), *detection.further_labels):
        labels.setdefault(label, score)
    hypotheses = [
        ObjectHypothesisWithPose(hypothesis=ObjectHypothesis(class_id=label, score=score), pose=pose)
        for label, score in labels.items()
    ]
    (cx, cy), box = detection.box.centre, detection.box
    bbox = BoundingBox2D(center=Pose2D(position=Point2D(x=cx, y=cy)), size_x=box.width, size_y=box.height)
    return Detection2D(header=header, results=hypotheses, bbox=bbox, id=tracked.id)


def _bad(kind: type[Message], why: str) -> MessageError:
    return MessageError("", kind.msg_name, why)
