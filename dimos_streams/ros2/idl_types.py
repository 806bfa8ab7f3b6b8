"""The types of topics as Cyclone DDS has them: described as ROS describes them, with bytes for values.

Participants tell each other what their types consist of, and Cyclone connects nobody whose type has another
description, whatever its name is.
"""

from __future__ import annotations

import functools
from typing import Any

from dimos_streams.ros2.layout import UNBOUNDED, Primitive, RosField, RosStruct, plain
from dimos_streams.ros2.names import dds_type

_UNSIGNED: dict[str, Primitive] = {"int16": "uint16", "int32": "uint32", "int64": "uint64"}
_ALL_UNSIGNED = {
    *("nav_msgs/msg/MapMetaData", "sensor_msgs/msg/CameraInfo", "sensor_msgs/msg/Image"),
    *("sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/PointField", "sensor_msgs/msg/RegionOfInterest"),
    *("std_msgs/msg/UInt16", "std_msgs/msg/UInt32", "std_msgs/msg/UInt64"),
}
"""The types whose integers ROS has without a sign, which LCM does not know."""
_GOAL_ID = ("goal_id", "uint8", 16)
_UUID = RosStruct("unique_identifier_msgs/msg/UUID", (RosField("uuid", "uint8", 16),))
"""The id of a goal is one more type on ROS's side, which its bytes do not show."""


@functools.cache
def bytes_class(struct: RosStruct) -> Any:
    """A class of Cyclone's for a type whose values are the bytes that are on the wire."""
    cls = _idl_class(plain(struct), "Bytes")

    def deserialize(data: bytes, **_: object) -> Any:
        sample = cls.__new__(cls)
        sample.data = data
        return sample

    cls.__init__ = lambda self: None
    cls.deserialize = staticmethod(deserialize)
    cls.deserialize_key = staticmethod(lambda data, **_: None)
    cls.serialize = lambda self, **_: self.data
    return cls


def _idl_class(struct: RosStruct, name: str) -> Any:
    from cyclonedds.idl import make_idl_struct

    fields = {_shown(struct, field): _idl_type(struct, field) for field in struct.fields}
    return make_idl_struct(name, dds_type(struct.name), fields, dataclassify=False)


@functools.cache
def _nested(struct: RosStruct) -> Any:
    return _idl_class(struct, struct.name.rpartition("/")[2])


def _shown(struct: RosStruct, field: RosField) -> str:
    """ROS 2 writes the matrices of a camera small."""
    return field.name.lower() if struct.name == "sensor_msgs/msg/CameraInfo" else field.name


def _idl_type(struct: RosStruct, field: RosField) -> Any:
    import cyclonedds.idl.types

    types: Any = cyclonedds.idl.types

    if (field.name, field.type, field.size) == _GOAL_ID:
        return _nested(_UUID)
    if isinstance(field.type, RosStruct):
        element = _nested(field.type)
    else:
        unsigned = struct.name in _ALL_UNSIGNED or field.name == "nanosec"
        kind = _UNSIGNED.get(field.type, field.type) if unsigned else field.type
        element = {"bool": bool, "string": str}.get(kind) or getattr(types, kind)
    if field.size is None:
        return element
    return types.sequence[element] if field.size == UNBOUNDED else types.array[element, field.size]
