"""Messages as Foxglove shows them: its own schemas for poses, pictures, scans, frames, boxes and log lines, and plain
JSON objects with a generated schema for everything else."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dimos_streams.messages.base import Field, Message, fields_of
from dimos_streams.messages.codec import type_named
from dimos_streams.messages.dimos_streams import ToolStreamEvent
from dimos_streams.messages.geometry_msgs import PoseStamped
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.plain_classes import class_of
from dimos_streams.messages.sensor_msgs import CameraInfo, CompressedImage, Image, LaserScan
from dimos_streams.messages.std_msgs import Header
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.vision_msgs import Detection2DArray

Schema = dict[str, Any]
_INTEGERS = {"int8_t", "int16_t", "int32_t", "int64_t", "byte"}
_LINE_LOOP = 2
_INFO, _WARNING, _ERROR = 2, 3, 4
_GREEN = {"r": 0.1, "g": 0.9, "b": 0.2, "a": 1.0}
_DARK = {"r": 0.0, "g": 0.0, "b": 0.0, "a": 0.6}


@dataclass(frozen=True, slots=True)
class View:
    """One form of a message: the topic's suffix, the schema's name, and the object."""

    suffix: str
    schema: str
    value: dict[str, Any]


def views_of(message: Message) -> Iterator[View]:
    """All forms of a message. What a schema of Foxglove can't hold goes beside it, on a topic with a suffix."""
    if isinstance(message, Image):
        yield _of_image(message)
    elif isinstance(message, CompressedImage):
        yield View("", "foxglove.CompressedImage", _picture(message.header, message.data, message.format))
    elif isinstance(message, TFMessage):
        yield View("", "foxglove.FrameTransforms", {"transforms": [_transform(one) for one in message.transforms]})
    elif isinstance(message, LaserScan):
        yield View("", "foxglove.LaserScan", _scan(message))
    elif isinstance(message, CameraInfo):
        yield View("", "foxglove.CameraCalibration", _calibration(message))
    else:
        yield View("", message.msg_name, plain(message))
        if isinstance(message, Odometry):
            yield View("/pose", "foxglove.PoseInFrame", _posed(message.header, message.pose.pose))
        elif isinstance(message, PoseStamped):
            yield View("/pose", "foxglove.PoseInFrame", _posed(message.header, message.pose))
        elif isinstance(message, Detection2DArray):
            yield View("/boxes", "foxglove.ImageAnnotations", _boxes(message))
        elif isinstance(message, ToolStreamEvent):
            yield View("/log", "foxglove.Log", _log_line(message))


def schema_named(name: str) -> Schema:
    """The JSON schema of a view's ``schema``."""
    if name in FOXGLOVE:
        return {"title": name, **FOXGLOVE[name]}
    return {"title": name, **_schema_of(type_named(name))}


def plain(message: Message) -> dict[str, Any]:
    """A message as JSON has it: bytes in base64, numbers that JSON does not have as null, ``…_json`` decoded."""
    found: dict[str, Any] = {}
    for field in fields_of(type(message)):
        value = _plain(getattr(message, field.name))
        found[field.name] = value
        if field.name.endswith("_json") and isinstance(value, str):
            try:
                found[field.name.removesuffix("_json")] = json.loads(value) if value else {}
            except ValueError:  # the text itself is there in any case
                continue
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return plain(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _of_image(image: Image) -> View:
    if image.encoding in ("jpeg", "png"):
        return View("", "foxglove.CompressedImage", _picture(image.header, image.data, image.encoding))
    value = {
        **_stamped(image.header),
        "width": image.width,
        "height": image.height,
        "encoding": image.encoding,
        "step": image.step,
        "data": _plain(bytes(image.data)),
    }
    return View("", "foxglove.RawImage", value)


def _picture(header: Header, data: bytes, format: str) -> dict[str, Any]:
    return {**_stamped(header), "data": _plain(bytes(data)), "format": format}


def _stamped(header: Header) -> dict[str, Any]:
    return {"timestamp": {"sec": header.stamp.sec, "nsec": header.stamp.nsec}, "frame_id": header.frame_id}


def _posed(header: Header, pose: Message) -> dict[str, Any]:
    return {**_stamped(header), "pose": plain(pose)}


def _transform(one: Any) -> dict[str, Any]:
    return {
        "timestamp": _stamped(one.header)["timestamp"],
        "parent_frame_id": one.header.frame_id,
        "child_frame_id": one.child_frame_id,
        "translation": plain(one.transform.translation),
        "rotation": plain(one.transform.rotation),
    }


def _scan(scan: LaserScan) -> dict[str, Any]:
    return {
        **_stamped(scan.header),
        "pose": {"position": {"x": 0.0, "y": 0.0, "z": 0.0}, "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}},
        "start_angle": _number(scan.angle_min),
        "end_angle": _number(scan.angle_max),
        "ranges": [_number(value) for value in scan.ranges],
        "intensities": [_number(value) for value in scan.intensities],
    }


def _number(value: float) -> float:
    """Foxglove's own schemas have no other numbers."""
    return value if math.isfinite(value) else 0.0


def _calibration(info: CameraInfo) -> dict[str, Any]:
    arrays = {name: [_number(value) for value in getattr(info, name)] for name in "DKRP"}
    size = {"width": info.width, "height": info.height}
    return {**_stamped(info.header), **size, "distortion_model": info.distortion_model, **arrays}


def _boxes(detections: Detection2DArray) -> dict[str, Any]:
    stamp = _stamped(detections.header)["timestamp"]
    points, texts = [], []
    for one in detections.detections:
        center, half_x, half_y = one.bbox.center.position, one.bbox.size_x / 2, one.bbox.size_y / 2
        corners = [(-half_x, -half_y), (half_x, -half_y), (half_x, half_y), (-half_x, half_y)]
        if not math.isfinite(center.x + center.y + half_x + half_y):
            continue  # it lies nowhere
        loop = [{"x": center.x + x, "y": center.y + y} for x, y in corners]
        label = one.results[0].hypothesis.class_id if one.results else "?"
        points.append(
            {"timestamp": stamp, "type": _LINE_LOOP, "points": loop, "outline_color": _GREEN, "thickness": 1.5}
        )
        texts.append(
            {
                "timestamp": stamp,
                "position": loop[0],
                "text": f"{one.id} {label}".strip(),
                "font_size": 10.0,
                "text_color": _GREEN,
                "background_color": _DARK,
            }
        )
    return {"circles": [], "points": points, "texts": texts}


def _log_line(event: ToolStreamEvent) -> dict[str, Any]:
    seconds, microseconds = divmod(event.utime, 1_000_000)
    return {
        "timestamp": {"sec": seconds, "nsec": microseconds * 1000},
        "level": _level(event),
        "message": f"{event.type}: {event.text}",
        "name": f"{event.skill} [{event.call_id}]",
        "file": event.module,
        "line": event.seq,
    }


def _level(event: ToolStreamEvent) -> int:
    if event.type != "close":
        return _INFO
    try:
        data = json.loads(event.data_json)
    except ValueError:
        data = None
    outcome = data.get("outcome") if isinstance(data, dict) else None
    return {"completed": _INFO, "cancelled": _WARNING}.get(str(outcome), _ERROR)


def _schema_of(cls: type[Message]) -> Schema:
    properties = {field.name: _schema_of_field(field) for field in fields_of(cls)}
    for field in fields_of(cls):
        if field.name.endswith("_json"):
            properties[field.name.removesuffix("_json")] = {}
    return {"type": "object", "properties": properties}


def _schema_of_field(field: Field) -> Schema:
    if field.size is not None and field.type == "byte":
        return _BYTES
    one = _schema_of(class_of(field)) if field.is_message else _schema_of_scalar(field.type)
    return one if field.size is None else _list(one)


def _schema_of_scalar(type_name: str) -> Schema:
    if type_name in _INTEGERS:
        return {"type": "integer"}
    if type_name in ("float", "double"):
        return {"type": ["number", "null"]}
    return {"type": "boolean"} if type_name == "boolean" else _TEXT


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _numbers(*names: str) -> Schema:
    return _object(**dict.fromkeys(names, _NUMBER))


_NUMBER: Schema = {"type": "number"}
_INTEGER: Schema = {"type": "integer", "minimum": 0}
_TEXT: Schema = {"type": "string"}
_BYTES: Schema = {"type": "string", "contentEncoding": "base64"}
_TIME = _object(sec=_INTEGER, nsec=_INTEGER)
_HEAD: dict[str, Schema] = {"timestamp": _TIME, "frame_id": _TEXT}
_POINT, _POINT_2 = _numbers("x", "y", "z"), _numbers("x", "y")
_ROTATION, _COLOUR = _numbers("x", "y", "z", "w"), _numbers("r", "g", "b", "a")
_POSE = _object(position=_POINT, orientation=_ROTATION)
_FRAME = _object(timestamp=_TIME, parent_frame_id=_TEXT, child_frame_id=_TEXT, translation=_POINT, rotation=_ROTATION)
_OUTLINE = _object(timestamp=_TIME, type=_INTEGER, points=_list(_POINT_2), outline_color=_COLOUR, thickness=_NUMBER)
_LABEL = _object(
    timestamp=_TIME,
    position=_POINT_2,
    text=_TEXT,
    font_size=_NUMBER,
    text_color=_COLOUR,
    background_color=_COLOUR,
)

FOXGLOVE: dict[str, Schema] = {
    "foxglove.CompressedImage": _object(**_HEAD, data=_BYTES, format=_TEXT),
    "foxglove.RawImage": _object(
        **_HEAD, width=_INTEGER, height=_INTEGER, encoding=_TEXT, step=_INTEGER, data=_BYTES
    ),
    "foxglove.PoseInFrame": _object(**_HEAD, pose=_POSE),
    "foxglove.FrameTransforms": _object(transforms=_list(_FRAME)),
    "foxglove.LaserScan": _object(
        **_HEAD,
        pose=_POSE,
        start_angle=_NUMBER,
        end_angle=_NUMBER,
        ranges=_list(_NUMBER),
        intensities=_list(_NUMBER),
    ),
    "foxglove.CameraCalibration": _object(
        **_HEAD,
        width=_INTEGER,
        height=_INTEGER,
        distortion_model=_TEXT,
        **dict.fromkeys("DKRP", _list(_NUMBER)),
    ),
    "foxglove.ImageAnnotations": _object(circles=_list({}), points=_list(_OUTLINE), texts=_list(_LABEL)),
    "foxglove.Log": _object(timestamp=_TIME, level=_INTEGER, message=_TEXT, name=_TEXT, file=_TEXT, line=_INTEGER),
}
"""By the names that Foxglove knows; the properties are those that it reads."""
