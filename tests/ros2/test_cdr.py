"""Values of ROS types as DDS carries them, byte for byte as ROS writes them."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from dimos_streams.errors import MessageError
from dimos_streams.messages import registry
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import decode as decode_lcm
from dimos_streams.messages.codec import encode as encode_lcm
from dimos_streams.messages.index import TYPE_NAMES
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.ros2.cdr import decode, encode
from dimos_streams.ros2.layout import UNBOUNDED, RosField, RosStruct, plain, struct_of

typestore = pytest.importorskip("rosbags.typesys", reason="the extra test has rosbags, which writes ROS's own bytes")

OTHERS = {
    "foxglove_msgs/msg/CompressedVideo": (
        "builtin_interfaces/Time timestamp\nstring frame_id\nuint8[] data\nstring format"
    ),
    "vision_msgs/msg/Point2D": "float64 x\nfloat64 y",
    "vision_msgs/msg/Pose2D": "vision_msgs/Point2D position\nfloat64 theta",
    "vision_msgs/msg/BoundingBox2D": "vision_msgs/Pose2D center\nfloat64 size_x\nfloat64 size_y",
    "vision_msgs/msg/BoundingBox3D": "geometry_msgs/Pose center\ngeometry_msgs/Vector3 size",
    "vision_msgs/msg/ObjectHypothesis": "string class_id\nfloat64 score",
    "vision_msgs/msg/ObjectHypothesisWithPose": (
        "vision_msgs/ObjectHypothesis hypothesis\ngeometry_msgs/PoseWithCovariance pose"
    ),
    "vision_msgs/msg/Detection2D": (
        "std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox2D bbox\nstring id"
    ),
    "vision_msgs/msg/Detection2DArray": "std_msgs/Header header\nvision_msgs/Detection2D[] detections",
    "vision_msgs/msg/Detection3D": (
        "std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox3D bbox\nstring id"
    ),
    "vision_msgs/msg/Detection3DArray": "std_msgs/Header header\nvision_msgs/Detection3D[] detections",
}
"""Definitions of ROS that rosbags does not bring."""


@pytest.fixture(scope="module")
def ros() -> Any:
    """ROS's types and codec, as rosbags has them for Humble."""
    store = typestore.get_typestore(typestore.Stores.ROS2_HUMBLE)
    for name, text in OTHERS.items():
        store.register(typestore.get_types_from_msg(text, name))
    return store


def ros_types() -> Iterator[type[Message]]:
    """The message types that ROS has too."""
    for name in TYPE_NAMES:
        if name.partition(".")[0] != "dimos_streams":
            found = registry.find(name)
            assert found is not None
            yield found


@pytest.mark.slow
@pytest.mark.feature("G4")
@pytest.mark.parametrize("cls", list(ros_types()), ids=lambda cls: cls.msg_name)
def test_each_type_has_the_bytes_that_ros_writes(cls: type[Message], ros: Any) -> None:
    struct, dice = struct_of(cls), random.Random(cls.msg_name)
    for _ in range(5):
        message = some(struct, dice)
        data = encode(struct, message)
        theirs = ros.deserialize_cdr(data, struct.name)
        assert bytes(ros.serialize_cdr(theirs, struct.name)) == data
        assert texts_and_numbers(theirs) == texts_and_numbers(plain_value(struct, message))
        back = decode(struct, data)
        assert back == message
        assert decode_lcm(cls, encode_lcm(back)) == message


def test_plain_values_have_the_names_of_ros() -> None:
    struct = plain(struct_of(Odometry))
    value = decode(struct, encode(struct_of(Odometry), Odometry()))
    assert value["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    assert decode(struct, encode(struct, value)) == value


def test_big_endian_bytes_are_read_too() -> None:
    struct = RosStruct(
        "p/msg/T", (RosField("flag", "bool"), RosField("values", "int16", UNBOUNDED), RosField("text", "string"))
    )
    data = bytes.fromhex("00000000 01000000 00000002 0001 fffe 00000003 686900")
    assert decode(struct, data) == {"flag": True, "values": (1, -2), "text": "hi"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is not plain CDR: it begins with nothing"),
        (b"\x00\x07\x00\x00", "it is not plain CDR: it begins with 00070000"),
        (b"\x80\x04\x95\x00", "it is not plain CDR"),
        (b"\x00\x01\x00\x00\x01", "std_msgs/msg/String.data: it ends after 1 bytes, 4 are needed"),
        (b"\x00\x01\x00\x00\xff\xff\xff\xff", "std_msgs/msg/String.data: 4294967295 bytes in 0"),
        (b"\x00\x01\x00\x00\x02\x00\x00\x00\xff\x00", "std_msgs/msg/String.data: 'utf-8' codec can't decode"),
        (b"\x00\x01\x00\x00\x01\x00\x00\x00\x00" + bytes(8), "8 bytes too many: its definition is another one there"),
    ],
)
def test_bytes_that_are_no_value_are_an_error_that_says_why(data: bytes, why: str) -> None:
    string = registry.find("std_msgs.String")
    assert string is not None
    with pytest.raises(MessageError, match="bad std_msgs/msg/String") as caught:
        decode(struct_of(string), data)
    assert caught.value.why.startswith(why)


def test_no_prefix_of_a_message_is_taken_for_one() -> None:
    struct = struct_of(Odometry)
    data = encode(struct, some(struct, random.Random(1)))
    for length in range(len(data) - 1):
        with pytest.raises(MessageError):
            decode(struct, data[:length])


@pytest.mark.parametrize("value", [{"x": 1.0}, {"x": "a", "y": 0.0, "z": 0.0}, {"x": None, "y": 0.0, "z": 0.0}])
def test_a_value_that_does_not_fit_is_an_error_that_names_its_field(value: dict[str, Any]) -> None:
    point = registry.find("geometry_msgs.Point")
    assert point is not None
    with pytest.raises(MessageError, match=r"geometry_msgs/msg/Point\.[xy]: "):
        encode(plain(struct_of(point)), value)


def test_a_number_that_a_field_has_no_room_for_is_an_error_that_names_it() -> None:
    speed = RosStruct("a_msgs/msg/Speed", (RosField("mps", "float32"),))
    with pytest.raises(MessageError, match=r"a_msgs/msg/Speed\.mps: float too large"):
        encode(speed, {"mps": 1e300})


def some(struct: RosStruct, dice: random.Random) -> Any:
    """A message with values by chance."""
    assert struct.message is not None
    return struct.message(**{field.name: _some_field(field, dice) for field in struct.fields})


def _some_field(field: RosField, dice: random.Random) -> Any:
    if field.size is None:
        return _some_value(field, dice)
    count = dice.randrange(4) if field.size == UNBOUNDED else field.size
    values = [_some_value(field, dice) for _ in range(count)]
    return bytes(values) if field.type == "uint8" else values


def _some_value(field: RosField, dice: random.Random) -> Any:
    kind = field.type
    if isinstance(kind, RosStruct):
        return some(kind, dice)
    if kind == "string":
        return dice.choice(["", "base_link", "ä", "x" * dice.randrange(9)])
    if kind == "bool":
        return dice.random() < 0.5
    if kind.startswith("float"):
        return dice.choice([0.0, -1.5, math.inf, float(dice.randrange(1 << 20)) / 1024])
    bits = int(kind.lstrip("uint"))
    return dice.randrange(1 << (bits - 1))


def plain_value(struct: RosStruct, message: Any) -> Any:
    """A message as dicts and lists, in the order of its fields."""
    return decode(plain(struct), encode(struct, message))


def texts_and_numbers(value: Any) -> list[Any]:
    """All that a value of ours or of rosbags' is made of, in order."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in texts_and_numbers(item)]
    if dataclasses.is_dataclass(value):
        fields = [
            field for field in dataclasses.fields(value) if not (field.name.isupper() or field.name == "__msgtype__")
        ]
        return [leaf for field in fields for leaf in texts_and_numbers(getattr(value, field.name))]
    if isinstance(value, (str, bool, int, float)):
        return [value]
    return [leaf for item in value for leaf in (texts_and_numbers(item) if not hasattr(item, "item") else [item])]
