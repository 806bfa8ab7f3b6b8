"""JSON schemas of what viewers are shown: Foxglove's own, those of our messages, and that of a call.

Viewers read less of JSON Schema than there is: a field has one type, a list has items of one type, and an object has
its properties. A channel whose schema says more can't be shown at all. So ``null``, which stands in some messages for
numbers that JSON does not have, is not mentioned, and fields that may be anything have no property.
"""

from __future__ import annotations

from typing import Any

from dimos_streams.messages.base import Field, Message
from dimos_streams.messages.codec import type_named
from dimos_streams.messages.plain_classes import class_of

Schema = dict[str, Any]
_INTEGERS = frozenset({"int8_t", "int16_t", "int32_t", "int64_t", "byte"})


def schema_named(name: str) -> Schema:
    """The JSON schema of a view's ``schema``. Raises ``MessageError`` if there is none of that name."""
    known = SCHEMAS.get(name)
    return {"title": name, **(_schema_of(type_named(name)) if known is None else known)}


def _schema_of(cls: type[Message]) -> Schema:
    return _object(**{field.name: _schema_of_field(field) for field in cls._content})


def _schema_of_field(field: Field) -> Schema:
    if field.size is not None and field.type == "byte":
        return _BYTES
    one = _schema_of(class_of(field)) if field.is_message else _schema_of_scalar(field.type)
    return one if field.size is None else _list(one)


def _schema_of_scalar(type_name: str) -> Schema:
    if type_name in _INTEGERS:
        return {"type": "integer"}
    if type_name in ("float", "double"):
        return _NUMBER
    return _TRUTH if type_name == "boolean" else _TEXT


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _numbers(*names: str) -> Schema:
    return _object(**dict.fromkeys(names, _NUMBER))


_NUMBER: Schema = {"type": "number"}
_INTEGER: Schema = {"type": "integer", "minimum": 0}
_TRUTH: Schema = {"type": "boolean"}
_TEXT: Schema = {"type": "string"}
_BYTES: Schema = {"type": "string", "contentEncoding": "base64"}
_ANYTHING = _object()
_TIME = _object(sec=_INTEGER, nsec=_INTEGER)
_HEAD: dict[str, Schema] = {"timestamp": _TIME, "frame_id": _TEXT}
_POINT, _POINT_2 = _numbers("x", "y", "z"), _numbers("x", "y")
_ROTATION, _COLOUR = _numbers("x", "y", "z", "w"), _numbers("r", "g", "b", "a")
_POSE = _object(position=_POINT, orientation=_ROTATION)
_FRAME = _object(timestamp=_TIME, parent_frame_id=_TEXT, child_frame_id=_TEXT, translation=_POINT, rotation=_ROTATION)
_OUTLINE = _object(timestamp=_TIME, type=_INTEGER, points=_list(_POINT_2), outline_color=_COLOUR, thickness=_NUMBER)
_CIRCLE = _object(timestamp=_TIME, position=_POINT_2, diameter=_NUMBER, thickness=_NUMBER, outline_color=_COLOUR)
_LABEL = _object(
    timestamp=_TIME,
    position=_POINT_2,
    text=_TEXT,
    font_size=_NUMBER,
    text_color=_COLOUR,
    background_color=_COLOUR,
)
_PACKED = _list(_object(name=_TEXT, offset=_INTEGER, type=_INTEGER))
_SOLID: dict[str, Schema] = {"pose": _POSE, "size": _POINT, "color": _COLOUR}
_MESH: dict[str, Schema] = {
    "pose": _POSE,
    "points": _list(_POINT),
    "color": _COLOUR,
    "colors": _list(_COLOUR),
    "indices": _list(_INTEGER),
}
_ENTITY = _object(
    **_HEAD,
    id=_TEXT,
    lifetime=_TIME,
    frame_locked=_TRUTH,
    metadata=_list(_object(key=_TEXT, value=_TEXT)),
    arrows=_list(_object(pose=_POSE, color=_COLOUR)),
    cubes=_list(_object(**_SOLID)),
    spheres=_list(_object(**_SOLID)),
    cylinders=_list(_object(**_SOLID, bottom_scale=_NUMBER, top_scale=_NUMBER)),
    lines=_list(_object(type=_INTEGER, thickness=_NUMBER, scale_invariant=_TRUTH, **_MESH)),
    triangles=_list(_object(**_MESH)),
    texts=_list(
        _object(pose=_POSE, billboard=_TRUTH, font_size=_NUMBER, scale_invariant=_TRUTH, color=_COLOUR, text=_TEXT)
    ),
    models=_list(_object(pose=_POSE)),
)

CALL = "dimos_streams.Call"

SCHEMAS: dict[str, Schema] = {
    "foxglove.CompressedImage": _object(**_HEAD, data=_BYTES, format=_TEXT),
    "foxglove.RawImage": _object(
        **_HEAD, width=_INTEGER, height=_INTEGER, encoding=_TEXT, step=_INTEGER, data=_BYTES
    ),
    "foxglove.PoseInFrame": _object(**_HEAD, pose=_POSE),
    "foxglove.PosesInFrame": _object(**_HEAD, poses=_list(_POSE)),
    "foxglove.FrameTransforms": _object(transforms=_list(_FRAME)),
    "foxglove.LaserScan": _object(
        **_HEAD,
        pose=_POSE,
        start_angle=_NUMBER,
        end_angle=_NUMBER,
        ranges=_list(_NUMBER),
        intensities=_list(_NUMBER),
    ),
    "foxglove.PointCloud": _object(**_HEAD, pose=_POSE, point_stride=_INTEGER, fields=_PACKED, data=_BYTES),
    "foxglove.Grid": _object(
        **_HEAD,
        pose=_POSE,
        column_count=_INTEGER,
        cell_size=_POINT_2,
        row_stride=_INTEGER,
        cell_stride=_INTEGER,
        fields=_PACKED,
        data=_BYTES,
    ),
    "foxglove.CameraCalibration": _object(
        **_HEAD,
        width=_INTEGER,
        height=_INTEGER,
        distortion_model=_TEXT,
        **dict.fromkeys("DKRP", _list(_NUMBER)),
    ),
    "foxglove.ImageAnnotations": _object(circles=_list(_CIRCLE), points=_list(_OUTLINE), texts=_list(_LABEL)),
    "foxglove.SceneUpdate": _object(
        deletions=_list(_object(timestamp=_TIME, type=_INTEGER, id=_TEXT)), entities=_list(_ENTITY)
    ),
    "foxglove.Log": _object(timestamp=_TIME, level=_INTEGER, message=_TEXT, name=_TEXT, file=_TEXT, line=_INTEGER),
    CALL: _object(
        timestamp=_TIME,
        call_id=_TEXT,
        skill=_TEXT,
        module=_TEXT,
        robot=_TEXT,
        caller=_TEXT,
        parent=_TEXT,
        state=_TEXT,
        outcome=_TEXT,
        text=_TEXT,
        seconds=_NUMBER,
        arguments=_ANYTHING,
        progress=_ANYTHING,
    ),
}
"""Schemas by name: Foxglove's own, with the properties that it reads, and ours that are no message of the bus."""
