"""What is made of messages, whatever they are."""

from __future__ import annotations

import random
import struct
from array import array
from typing import Any

import pytest

from dimos_streams.bridge.live.frames import MAX_JSON, Fault, LiveFrame, Received, frame_of, is_slow
from dimos_streams.bridge.live.kinds import topic_infos
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import Point, PoseStamped, Quaternion, Transform, TransformStamped, Vector3
from dimos_streams.messages.geometry_msgs import Pose as PoseMessage
from dimos_streams.messages.image import array_from_image
from dimos_streams.messages.nav_msgs import MapMetaData, OccupancyGrid, Odometry, Path
from dimos_streams.messages.sensor_msgs import CompressedImage, Image, LaserScan
from dimos_streams.messages.std_msgs import String
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.time import header
from dimos_streams.messages.vision_msgs import Detection2D, Detection2DArray
from tests.bridge.live.watched_topics import SeenFrame, picture


def made_of(data: bytes, type_name: str) -> LiveFrame | Fault:
    (info,) = topic_infos([f"/topic#{type_name}"], [])
    return frame_of(info, Received(data, 5, 1))


def shown(message: Message) -> SeenFrame:
    made = made_of(encode(message), message.msg_name)
    assert isinstance(made, LiveFrame), made
    return SeenFrame.of(made.encoded(dropped=0))


def fault(message: Message) -> str:
    made = made_of(encode(message), message.msg_name)
    assert isinstance(made, Fault), made
    return made.text


def grid(**fields: Any) -> OccupancyGrid:
    origin = PoseMessage(position=Point(x=-1.0, y=2.0), orientation=Quaternion(w=1.0))
    info = MapMetaData(resolution=0.25, width=3, height=2, origin=origin)
    return OccupancyGrid(header=header("map", 9), info=info, data=[0, 100, -1, 50, 0, 0])


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8", "mono8", "mono16", "16UC1"])
def test_raw_pictures_are_made_jpegs_of_their_size(encoding: str) -> None:
    raw = picture(encoding)
    (info,) = topic_infos([channel_name("/picture", Image)], [])
    assert is_slow(info, encode(raw)), "the loop does not wait for it"
    frame = shown(raw)
    assert (frame.header["encoding"], frame.header["width"], frame.header["height"]) == ("jpeg", 32, 24)
    pixels = array_from_image(Image(encoding="jpeg", width=32, height=24, data=frame.payload))
    assert pixels.shape == (24, 32, 3)
    if encoding in ("rgb8", "bgr8", "rgba8", "bgra8"):
        original = array_from_image(raw).astype(int)
        assert abs(pixels.astype(int) - original).mean() < 8


def test_compressed_pictures_are_passed_on_if_browsers_show_them() -> None:
    data = picture().data
    frame = shown(CompressedImage(header=header("camera", 8), format="bgr8; jpeg compressed bgr8", data=data))
    assert (frame.payload, frame.header["encoding"], frame.header["stamp"]) == (data, "jpeg", 8)
    assert "valid: jpeg, png" in fault(CompressedImage(format="theora", data=b"abc"))


def test_a_grid_has_its_cells_behind_its_place() -> None:
    frame = shown(grid())
    assert array("b", frame.payload).tolist() == [0, 100, -1, 50, 0, 0]
    place = {name: frame.header[name] for name in ("resolution", "width", "height", "origin", "frame_id")}
    assert place == {
        "resolution": 0.25,
        "width": 3,
        "height": 2,
        "origin": {"x": -1.0, "y": 2.0, "yaw": 0.0},
        "frame_id": "map",
    }


def test_paths_and_frames_are_json() -> None:
    path = shown(Path(header=header("odom", 3), poses=[PoseStamped(), PoseStamped()]))
    assert (path.header["kind"], len(path.header["message"]["poses"]), path.header["stamp"]) == ("path", 2, 3)
    moved = Transform(translation=Vector3(x=1.5))
    tf = shown(TFMessage(transforms=[TransformStamped(child_frame_id="base_link", transform=moved)]))
    (transform,) = tf.header["message"]["transforms"]
    assert (transform["child_frame_id"], transform["transform"]["translation"]["x"]) == ("base_link", 1.5)
    assert tf.payload == b""


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Image(width=4, height=4, encoding="rgb8", step=12, data=b"123"), "4 rows of 12 bytes expected"),
        (Image(width=100_000, height=100_000, encoding="rgb8", step=300_000, data=b""), "300000 bytes expected"),
        (Image(width=0, height=-1, encoding="mono8", step=0, data=b""), "0x-1 pixels"),
        (Image(width=2, height=2, encoding="h264", data=b"1234"), "unknown encoding 'h264'"),
        (OccupancyGrid(info=MapMetaData(width=2, height=2), data=[0, 0, 0]), "3 cells, of a grid of 2 x 2"),
        (String(data="x" * (MAX_JSON + 1)), f"up to {MAX_JSON} are shown"),
    ],
)
def test_what_does_not_fit_is_named(message: Message, why: str) -> None:
    assert why in fault(message)


MESSAGES: list[Message] = [
    picture(),
    picture("rgb8", 4, 2),
    grid(),
    LaserScan(ranges=[1.0, 2.0], intensities=[3.0]),
    Odometry(),
    Detection2DArray(detections=[Detection2D(id="1")]),
    CompressedImage(format="jpeg", data=b"abc"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.msg_name)
def test_whatever_bytes_come_there_is_a_frame_or_a_reason(message: Message) -> None:
    """Cut, changed and with counts that lie: nothing else may ever be raised."""
    rng = random.Random(4)
    whole = encode(message)
    count = struct.Struct(">i")
    for number in range(300):
        data = bytearray(whole)
        if number % 3 == 0:
            del data[rng.randrange(len(data)) :]
        elif number % 3 == 1:
            count.pack_into(data, 8 + 4 * rng.randrange(2), rng.choice([-1, -(2**31), 2**31 - 1, len(data), 1, 0]))
        for _ in range(rng.randrange(3)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            (info,) = topic_infos([f"/topic#{message.msg_name}"], [])
            is_slow(info, bytes(data))
        except MessageError:
            pass
        made = made_of(bytes(data), message.msg_name)
        if isinstance(made, LiveFrame):
            SeenFrame.of(made.encoded(dropped=3))
