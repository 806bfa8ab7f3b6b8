"""The layout of ROS types, derived from this package's own message definitions while it runs.

A type of ROS has the fields of its LCM definition without what LCM adds: fields that only size an array, and a
header's ``seq``. Times and durations are those of ``builtin_interfaces`` there.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from dimos_streams.messages import registry
from dimos_streams.messages.base import Message, fields_of
from dimos_streams.messages.plain_classes import class_of
from dimos_streams.ros2.names import lcm_type, ros_type

Primitive = Literal[
    "bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "string"
]
UNBOUNDED = -1
"""The size of an array that says with each message how long it is."""

_FROM_LCM: dict[str, Primitive] = {
    "int8_t": "int8",
    "int16_t": "int16",
    "int32_t": "int32",
    "int64_t": "int64",
    "byte": "uint8",
    "float": "float32",
    "double": "float64",
    "boolean": "bool",
    "string": "string",
}
_OTHERWISE_NAMED = {
    "std_msgs.Time": "builtin_interfaces/msg/Time",
    "std_msgs.Duration": "builtin_interfaces/msg/Duration",
}
_LEFT_OUT = {("std_msgs.Header", "seq")}
_RENAMED = {(name, "nsec"): "nanosec" for name in _OTHERWISE_NAMED.values()}


@dataclass(frozen=True, slots=True)
class RosField:
    """One field of a type."""

    name: str
    type: Primitive | RosStruct
    size: int | None = None
    """The fixed length of an array, or ``UNBOUNDED``; None for a single value."""


@dataclass(frozen=True, slots=True)
class RosStruct:
    """A type of ROS. Its values are messages of the LCM type that it is derived from, or else plain dicts."""

    name: str
    """``"nav_msgs/msg/Odometry"``."""
    fields: tuple[RosField, ...]
    message: type[Message] | None = None
    sizes: tuple[tuple[str, str], ...] = ()
    """The fields of a message that size its arrays, each with the array that it sizes."""


_structs: dict[type[Message], RosStruct] = {}


def struct_of(cls: type[Message]) -> RosStruct:
    """The type of ROS that a class of messages stands for."""
    known = _structs.get(cls)
    if known is None:
        known = _structs[cls] = _derived(cls)
    return known


def _derived(cls: type[Message]) -> RosStruct:
    layout = fields_of(cls)
    sizes = {field.size: field.name for field in layout if isinstance(field.size, str)}
    fields = tuple(
        RosField(
            field.name,
            struct_of(class_of(field)) if field.is_message else _FROM_LCM[field.type],
            UNBOUNDED if isinstance(field.size, str) else field.size,
        )
        for field in layout
        if field.name not in sizes and (cls.msg_name, field.name) not in _LEFT_OUT
    )
    name = _OTHERWISE_NAMED.get(cls.msg_name) or ros_type(cls.msg_name)
    return RosStruct(name, fields, cls, tuple(sizes.items()))


def plain(struct: RosStruct) -> RosStruct:
    """A type whose values are plain dicts, and whose fields have the names that they have in ROS."""
    fields = tuple(
        dataclasses.replace(
            field,
            name=_RENAMED.get((struct.name, field.name), field.name),
            type=plain(field.type) if isinstance(field.type, RosStruct) else field.type,
        )
        for field in struct.fields
    )
    return RosStruct(struct.name, fields)


def known_struct(name: str) -> RosStruct | None:
    """The type of a name of ROS, or None if there is no message definition of it."""
    found = registry.find(lcm_type(name))
    return struct_of(found) if found is not None and ros_type(found.msg_name) == name else None
