"""Goals as callers give them: a JSON Schema from the type, the values that are left out, and what comes back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dimos_streams.errors import UserError, suggest
from dimos_streams.ros2.definitions import DUMMY
from dimos_streams.ros2.layout import UNBOUNDED, Primitive, RosField, RosStruct

Limits = Mapping[str, tuple[float, float]]
"""The least and the greatest value of numbers, by their paths: ``"pose.position.x"``."""

MAX_ITEMS = 10_000
MAX_TEXT = 10_000
_SHOWN_ITEMS = 64
"""Arrays that are longer are left out of what comes back."""


def schema_of(struct: RosStruct, limits: Limits) -> dict[str, Any]:
    """A JSON Schema of a goal: its own fields have to be given, those within them need not be.

    Raises ``UserError`` for limits of anything that is not one of its numbers.
    """
    paths: list[str] = []
    schema = _object(struct, "", limits, paths)
    for path in limits:
        if path not in paths:
            raise UserError(f"limits: {path!r} is no number of the goal{suggest(path, paths)}")
    return {**schema, "required": list(schema["properties"])}


def completed(struct: RosStruct, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole value of what fits the schema: fields that are not given are zero or empty, and rotations do
    not turn."""
    if struct.name == "geometry_msgs/msg/Quaternion" and not given:
        given = {"w": 1.0}
    return {field.name: _whole(field, given.get(field.name)) for field in struct.fields}


def shown(value: Any) -> Any:
    """A value of ROS in a form that JSON has: no NaN, no bytes, no long arrays."""
    if isinstance(value, Mapping):
        return {name: shown(item) for name, item in value.items() if name != DUMMY and not _is_long(item)}
    if isinstance(value, (list, tuple, bytes)):
        return [shown(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def scalars(value: Mapping[str, Any]) -> str:
    """The plain values at the top of what comes back, for people."""
    texts = [f"{name} {item:.4g}" for name, item in value.items() if isinstance(item, float)]
    texts += [f"{name} {item}" for name, item in value.items() if isinstance(item, (int, str))]
    return ", ".join(texts)


def _is_long(value: Any) -> bool:
    return isinstance(value, (list, tuple, bytes)) and len(value) > _SHOWN_ITEMS


def _object(struct: RosStruct, path: str, limits: Limits, paths: list[str]) -> dict[str, Any]:
    fields = [field for field in struct.fields if field.name != DUMMY]
    properties = {field.name: _property(field, f"{path}{field.name}", limits, paths) for field in fields}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _property(field: RosField, path: str, limits: Limits, paths: list[str]) -> dict[str, Any]:
    if isinstance(field.type, RosStruct):
        item = _object(field.type, f"{path}.", limits, paths)
    else:
        item = _scalar(field.type, path, limits, paths)
    if field.size is None:
        return item
    bounds = {"maxItems": MAX_ITEMS} if field.size == UNBOUNDED else {"minItems": field.size, "maxItems": field.size}
    return {"type": "array", "items": item, **bounds}


def _scalar(kind: Primitive, path: str, limits: Limits, paths: list[str]) -> dict[str, Any]:
    if kind == "string":
        return {"type": "string", "maxLength": MAX_TEXT}
    if kind == "bool":
        return {"type": "boolean"}
    paths.append(path)
    schema: dict[str, Any] = {"type": "number" if kind.startswith("float") else "integer"}
    if path in limits:
        least, greatest = limits[path]
        return {**schema, "minimum": least, "maximum": greatest}
    if kind.startswith("float"):
        return schema
    bits = int(kind.lstrip("uint"))
    low, high = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return {**schema, "minimum": low, "maximum": high}


def _whole(field: RosField, given: Any) -> Any:
    if field.size is not None:
        items = [None] * max(field.size, 0) if given is None else given
        return [_one(field.type, item) for item in items]
    return _one(field.type, given)


def _one(kind: Primitive | RosStruct, given: Any) -> Any:
    if isinstance(kind, RosStruct):
        return completed(kind, given or {})
    if given is not None:
        # To JSON Schema 5.0 is an integer; CDR takes none with a point.
        return int(given) if isinstance(given, float) and not kind.startswith("float") else given
    return "" if kind == "string" else False if kind == "bool" else 0
