"""Frames: the form in which watchers get a message.

A frame is the length of its header (4 bytes, little-endian), the header (a JSON object in UTF-8), and the payload.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pydantic_core import to_json

from dimos_streams.bridge.live.kinds import TopicInfo
from dimos_streams.bridge.live.pictures import compressed_format, jpeg_of
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message, to_json_value
from dimos_streams.messages.codec import decode, type_named
from dimos_streams.messages.image import FILES
from dimos_streams.messages.nav_msgs import OccupancyGrid
from dimos_streams.messages.picture_files import check_claim
from dimos_streams.messages.planar import planar_pose
from dimos_streams.messages.sensor_msgs import CompressedImage, Image, LaserScan
from dimos_streams.messages.std_msgs import Header
from dimos_streams.messages.time import utime_of

MAX_JSON = 256 * 1024
"""Maximum size of a message that is shown as JSON, in bytes."""

_LENGTH = struct.Struct("<I")
_COUNT = struct.Struct(">i")
_COUNTS_AT = 8
"""The counts of a message's arrays stand behind its fingerprint."""

M = TypeVar("M", bound=Message)


class Received(NamedTuple):
    """A message as it came."""

    data: bytes
    utime: int
    """Time at which it came, µs since the Unix epoch, by the run's clock."""
    number: int
    """Its number, 1, 2, 3 … since the topic is watched."""


@dataclass(frozen=True, slots=True)
class LiveFrame:
    """A message as watchers get it. It is made once for all of them."""

    number: int
    head: bytes
    """The header without its closing brace, and without ``dropped``, which is different for each watcher."""
    payload: bytes

    def encoded(self, dropped: int) -> bytes:
        """The frame for a watcher that did not get ``dropped`` frames."""
        header = b'%b,"dropped":%d}' % (self.head, dropped)
        return b"".join((_LENGTH.pack(len(header)), header, self.payload))


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason for which a message can't be shown."""

    number: int
    text: str


def is_slow(info: TopicInfo, data: bytes) -> bool:
    """Return whether a frame takes so long to make that the loop must not wait for it. Raises ``MessageError``."""
    if info.type == Image.msg_name:
        return _image_of(info, data)[0].encoding not in FILES
    return info.type not in _MAKERS and len(data) > ONE_PIECE


def frame_of(info: TopicInfo, received: Received) -> LiveFrame | Fault:
    """Make the frame that watchers get of a message, or the fault for which there is none. Any thread may call it."""
    try:
        fields, payload = _MAKERS.get(info.type, _as_json)(info, received.data)
    except MessageError as error:
        return Fault(received.number, str(error))
    header = {
        "topic": info.topic,
        "type": info.type,
        "kind": info.kind,
        "robot": info.robot,
        "utime": received.utime,
        "number": received.number,
        **fields,
    }
    return LiveFrame(received.number, to_json(header, inf_nan_mode="null")[:-1], payload)


_Parts = tuple[dict[str, Any], bytes]
"""The fields that a kind adds to the header, and the payload."""


def _as_json(info: TopicInfo, data: bytes) -> _Parts:
    if len(data) > MAX_JSON:
        why = f"{len(data)} bytes; up to {MAX_JSON} are shown of what is no picture, scan or grid"
        raise MessageError(info.channel, info.type, why)
    message = decode(type_named(info.type, info.channel), data, info.channel)
    header = getattr(message, "header", None)
    stamped = _stamped(header) if isinstance(header, Header) else {"stamp": None}
    return {**stamped, "message": to_json_value(message)}, b""


def _picture(info: TopicInfo, data: bytes) -> _Parts:
    image, pixels = _image_of(info, data)
    fields = {**_stamped(image.header), "encoding": image.encoding, "width": image.width, "height": image.height}
    if image.encoding in FILES:
        return fields, _file(info, pixels)
    image.data = pixels
    return fields | {"encoding": "jpeg"}, jpeg_of(image, info.channel)


def _image_of(info: TopicInfo, data: bytes) -> tuple[Image, bytes]:
    image, tail = _without_arrays(Image, data, info.channel, 1)
    return image, tail


def _compressed(info: TopicInfo, data: bytes) -> _Parts:
    # The format stands before the data, which is last.
    image, tail = _without_arrays(CompressedImage, data, info.channel, 1)
    encoding = compressed_format(image, info.channel)
    return {**_stamped(image.header), "encoding": encoding, "width": None, "height": None}, _file(info, tail)


def _file(info: TopicInfo, data: bytes) -> bytes:
    """The file as it is. Raises ``MessageError`` for one that would take all memory of those who show it."""
    try:
        check_claim(data)
    except MessageError as error:
        raise MessageError(info.channel, info.type, error.why) from error
    return data


def _scan(info: TopicInfo, data: bytes) -> _Parts:
    counts = _counts(data, 2)
    scan, tail = _without_arrays(LaserScan, data, info.channel, 2, size=4)
    ranges = array("f", tail[: 4 * counts[0]])
    if sys.byteorder == "little":
        ranges.byteswap()
    names = ("angle_min", "angle_increment", "range_min", "range_max")
    return {**_stamped(scan.header), **{name: getattr(scan, name) for name in names}}, ranges.tobytes()


def _grid(info: TopicInfo, data: bytes) -> _Parts:
    grid, cells = _without_arrays(OccupancyGrid, data, info.channel, 1)
    if len(cells) != grid.info.width * grid.info.height:
        why = f"{len(cells)} cells, of a grid of {grid.info.width} x {grid.info.height}"
        raise MessageError(info.channel, info.type, why)
    pose = planar_pose(grid.info.origin)
    if pose is None:
        raise MessageError(info.channel, info.type, "its origin is no pose in the plane")
    fields = {
        **_stamped(grid.header),
        "resolution": grid.info.resolution,
        "width": grid.info.width,
        "height": grid.info.height,
        "origin": dict(zip(("x", "y", "yaw"), pose, strict=True)),
    }
    return fields, cells


_MAKERS: dict[str, Callable[[TopicInfo, bytes], _Parts]] = {
    Image.msg_name: _picture,
    CompressedImage.msg_name: _compressed,
    LaserScan.msg_name: _scan,
    OccupancyGrid.msg_name: _grid,
}


def _without_arrays(cls: type[M], data: bytes, channel: str, arrays: int, *, size: int = 1) -> tuple[M, bytes]:
    """A message whose last fields are its only arrays, with these empty, and their bytes.

    Decoding a large array only to encode it again would take longer than all the rest. ``arrays`` is how many there
    are, ``size`` the bytes of each entry.
    """
    counts = _counts(data, arrays)
    length = size * sum(counts)
    if min(counts, default=0) < 0 or length > len(data):
        decode(cls, data, channel)  # which says what is wrong
        raise MessageError(channel, cls.msg_name, f"its arrays have {counts} entries")
    behind = _COUNTS_AT + _COUNT.size * arrays
    rest = data[behind : len(data) - length]
    message = decode(cls, data[:_COUNTS_AT] + bytes(_COUNT.size * arrays) + rest, channel)
    return message, data[len(data) - length :]


def _counts(data: bytes, arrays: int) -> list[int]:
    ends = (_COUNTS_AT + _COUNT.size * (index + 1) for index in range(arrays))
    return [_COUNT.unpack(data[end - _COUNT.size : end])[0] for end in ends if end <= len(data)]


def _stamped(header: Header) -> dict[str, Any]:
    """A header's stamp in µs since the Unix epoch, None for one that is not set, and its frame."""
    return {"stamp": utime_of(header) or None, "frame_id": header.frame_id}
