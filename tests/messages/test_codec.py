"""Bytes to messages and back: true, strict, and never another exception than MessageError."""

from __future__ import annotations

import contextlib
import pickle
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, decode, encode, split_channel, type_named
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamEvent
from dimos_streams.messages.geometry_msgs import (
    Point,
    PoseStamped,
    PoseWithCovariance,
    TransformStamped,
    Twist,
    Vector3,
)
from dimos_streams.messages.index import TYPE_NAMES
from dimos_streams.messages.nav_msgs import OccupancyGrid, Odometry, Path
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.messages.std_msgs import Header, String
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.vision_msgs import Detection2D, Detection2DArray, ObjectHypothesisWithPose
from tests.messages.strategies import messages

CHANNEL = "/somewhere#a.Type"

EVENT = ToolStreamEvent(
    utime=1_600_000_000_000_000,
    call_id="c-1",
    seq=2,
    type="update",
    module="follow",
    skill="follow_person",
    caller="agent",
    text="Found the person, following",
    data_json='{"distance_m":1.5}',
)
TWIST = Twist(linear=Vector3(x=0.5, y=-0.25), angular=Vector3(z=1.0))

any_message = st.sampled_from(TYPE_NAMES).flatmap(lambda name: messages(type_named(name)))
fuzzed = settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPE_NAMES)
def test_messages_survive_the_wire(name: str) -> None:
    @settings(fuzzed, max_examples=15)
    @given(message=messages(type_named(name)))
    def check(message: Message) -> None:
        data = encode(message)
        back = decode(type(message), data)
        assert back == message
        assert encode(back) == data

    check()


@pytest.mark.slow
@fuzzed
@given(message=any_message)
def test_every_truncation_is_an_error(message: Message) -> None:
    data = encode(message)
    for length in range(len(data)):
        with pytest.raises(MessageError):
            decode(type(message), data[:length], CHANNEL)


@pytest.mark.slow
@fuzzed
@given(message=any_message, junk=st.binary(min_size=1, max_size=9))
def test_trailing_junk_is_an_error(message: Message, junk: bytes) -> None:
    with pytest.raises(MessageError, match=f"{len(junk)} bytes too many"):
        decode(type(message), encode(message) + junk, CHANNEL)


@pytest.mark.slow
@fuzzed
@given(message=any_message, data=st.data())
def test_mutated_bytes_give_a_message_or_a_message_error(message: Message, data: st.DataObject) -> None:
    mutated = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(8, len(mutated) - 1))] = data.draw(st.sampled_from([0, 1, 127, 128, 255]))
    decode_or_message_error(type(message), bytes(mutated))


@pytest.mark.slow
@fuzzed
@given(name=st.sampled_from(TYPE_NAMES), data=st.binary(max_size=200))
def test_random_bytes_give_a_message_or_a_message_error(name: str, data: bytes) -> None:
    cls = type_named(name)
    decode_or_message_error(cls, data)
    decode_or_message_error(cls, cls._get_packed_fingerprint() + data)


def decode_or_message_error(cls: type[Message], data: bytes) -> None:
    with contextlib.suppress(MessageError):
        assert isinstance(decode(cls, data, CHANNEL), cls)


def test_golden_bytes_of_an_event() -> None:
    golden = bytes.fromhex(
        "4ee17e7fec6cf7260005af3107a4000000000004632d310000000002000000077570646174650000"
        "000007666f6c6c6f77000000000e666f6c6c6f775f706572736f6e00000000066167656e74000000"
        "001c466f756e642074686520706572736f6e2c20666f6c6c6f77696e6700000000137b2264697374"
        "616e63655f6d223a312e357d00"
    )
    assert encode(EVENT) == golden
    assert decode(ToolStreamEvent, golden) == EVENT


def test_golden_bytes_of_a_twist() -> None:
    golden = bytes.fromhex("2e7c07d7cdf7e027") + struct.pack(">6d", 0.5, -0.25, 0.0, 0.0, 0.0, 1.0)
    assert encode(TWIST) == golden
    assert decode(Twist, golden) == TWIST


def test_sizes_are_filled_in_at_every_depth() -> None:
    message = Detection2DArray(detections=[Detection2D(results=[ObjectHypothesisWithPose()]), Detection2D()])
    back = decode(Detection2DArray, encode(message))
    assert back.detections_length == 2
    assert [detection.results_length for detection in back.detections] == [1, 0]


def test_a_message_encodes_itself_as_the_codec_does() -> None:
    assert LaserScan.decode(LaserScan(ranges=[5.0] * 120).encode()).ranges_length == 120
    message = Detection2DArray(detections=[Detection2D(results=[ObjectHypothesisWithPose()]), Detection2D()])
    assert message.encode() == encode(message)
    with pytest.raises(MessageError, match=r"OccupancyGrid: data.0.: 300"):
        OccupancyGrid(data=[300]).encode()


def test_numpy_arrays_are_encoded_as_numbers() -> None:
    scan = LaserScan(ranges=np.linspace(0.5, 2.0, 4), intensities=np.arange(2))
    assert decode(LaserScan, encode(scan)) == LaserScan(ranges=[0.5, 1.0, 1.5, 2.0], intensities=[0, 1])


def test_buffers_other_than_bytes_can_be_decoded() -> None:
    assert decode(Twist, memoryview(encode(TWIST))) == TWIST  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Twist(linear=Vector3(x="fast")), "linear.x: 'fast' is no double"),  # type: ignore[arg-type]
        (Twist(linear=None), "linear: geometry_msgs.Vector3 expected, got None"),  # type: ignore[arg-type]
        (Header(seq=1 << 31), "seq: 2147483648 is no int32_t"),
        (LaserScan(range_max=1e39), "range_max: 1e+39 is no float"),
        (LaserScan(ranges=[1.0, 1e39]), "ranges[1]: 1e+39 is no float"),
        (LaserScan(ranges=5.0), "ranges: 'float' object is not iterable"),  # type: ignore[arg-type]
        (String(data="\ud800"), "data: '\\ud800' is no string"),
        (String(data=b"text"), "data: b'text' is no string"),  # type: ignore[arg-type]
        (Image(is_bigendian=256), "is_bigendian: 256 is no byte"),
        (Image(data="text"), "data: bytes expected, got str"),  # type: ignore[arg-type]
        (Image(data=np.zeros(3)), "data: bytes expected, got ndarray"),  # type: ignore[arg-type]
        (OccupancyGrid(data=[0, 128]), "data[1]: 128 is no int8_t"),
        (PoseWithCovariance(covariance=[0.0] * 35), "covariance: 35 entries, 36 expected"),
        (Odometry(pose=PoseWithCovariance(covariance=[])), "pose.covariance: 0 entries, 36 expected"),
        (
            TFMessage(transforms=[TransformStamped(), TransformStamped(child_frame_id=1)]),  # type: ignore[arg-type]
            "transforms[1].child_frame_id: 1 is no string",
        ),
        (Path(poses=[Point()]), "poses[0]: geometry_msgs.PoseStamped expected"),  # type: ignore[list-item]
        (ModuleStatus(call_ids=["a", "b"], last_seqs=[1]), "last_seqs: 1 entries, 2 expected (n_calls)"),
    ],
)
def test_encode_names_the_field_at_fault(message: Message, why: str) -> None:
    with pytest.raises(MessageError) as caught:
        encode(message, CHANNEL)
    assert caught.value.why.startswith(why)
    assert (caught.value.channel, caught.value.type_name) == (CHANNEL, message.msg_name)


def test_decode_says_why() -> None:
    event = encode(EVENT)
    with pytest.raises(MessageError, match=r"it ends after 100 bytes, .* too early"):
        decode(ToolStreamEvent, event[:100], CHANNEL)
    with pytest.raises(MessageError, match=r"its fingerprint is 2e7c07d7cdf7e027, not .* another type"):
        decode(ToolStreamEvent, encode(TWIST), CHANNEL)
    for protocol in range(2, 6):
        with pytest.raises(MessageError, match="a Python pickle, which is never read"):
            decode(Twist, pickle.dumps({"linear": 1.0}, protocol=protocol), channel="/cmd_vel")
    with pytest.raises(MessageError, match="its fingerprint is missing"):
        decode(ToolStreamEvent, b"", CHANNEL)
    with pytest.raises(MessageError, match="'utf-8' codec can't decode byte 0xff"):
        decode(String, encode(String(data="x")).replace(b"x", b"\xff"), CHANNEL)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Path(poses=[PoseStamped()]), "poses_length is negative"),
        (Image(data=b"ab"), "size is negative"),
        (LaserScan(ranges=[1.0]), "size is negative"),
        (Detection2DArray(), "detections_length is negative"),
    ],
)
def test_negative_sizes_are_errors(message: Message, why: str) -> None:
    """Also where lcm-gen's loop would take them for zero: such a Path would else be valid with its poses cut off."""
    data = bytearray(encode(message))
    data[8:12] = struct.pack(">i", -1)
    whole = bytes(data[: len(encode(type(message)()))])
    with pytest.raises(MessageError, match=why):
        decode(type(message), whole, CHANNEL)


def test_types_by_name() -> None:
    assert type_named("geometry_msgs.Twist") is Twist
    with pytest.raises(MessageError, match=r"did you mean 'geometry_msgs\.Twist'\?"):
        type_named("geometry_msgs.Twits", CHANNEL)
    for foreign in ("os.path", "", ".", "geometry_msgs", "geometry_msgs.Twist.encode"):
        with pytest.raises(MessageError, match="no such message type"):
            type_named(foreign)


def test_channels_carry_topic_and_type() -> None:
    assert channel_name("/cmd_vel", Twist) == "/cmd_vel#geometry_msgs.Twist"
    assert split_channel("/robot1/cmd_vel#geometry_msgs.Twist") == ("/robot1/cmd_vel", "geometry_msgs.Twist")
    assert split_channel("FOREIGN") == ("FOREIGN", "")


def test_channels_are_at_most_63_bytes() -> None:
    suffix = len("#geometry_msgs.Twist")
    fits = "/" + "é" * ((62 - suffix) // 2)
    assert len(channel_name(fits, Twist).encode()) == 63
    with pytest.raises(UserError, match=r"is 64 bytes long, LCM allows 63: shorten the topic '.*' .* by 1"):
        channel_name(fits + "x", Twist)


@pytest.mark.parametrize("topic", ["", "cmd_vel", "/a#b", "/a b", "/a\0b"])
def test_topics_that_would_break_a_channel_are_refused(topic: str) -> None:
    with pytest.raises(UserError, match="can't be a topic"):
        channel_name(topic, Twist)
