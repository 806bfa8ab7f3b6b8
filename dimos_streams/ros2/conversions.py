"""Conversions from messages of ROS to those of this package's streams, and back, where types or customs differ."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs import TransformStamped, Twist, TwistStamped
from dimos_streams.messages.image import JPEG, image_from_array, jpeg_size, rgb_from_image
from dimos_streams.messages.sensor_msgs import CompressedImage, Image, LaserScan
from dimos_streams.messages.std_msgs import Header, Time
from dimos_streams.messages.tf2_msgs import TFMessage

_log = logging.getLogger(__name__)

Conversion = Callable[[Any], Message]

MAX_PICTURE = 60_000
"""The largest picture, in bytes, that every bus carries whole; larger ones are compressed more."""
_QUALITIES = (80, 60, 40, 25)
_COLOURED = ("rgb8", "bgr8", "rgba8", "bgra8")
_MAX_FRAMES = 256


def incoming(theirs: type[Message], ours: type[Message]) -> Conversion | None:
    """Return the conversion from ROS's message to a stream's, or None if there is none. It may raise
    ``MessageError``."""
    return _INCOMING.get((theirs, ours)) or (_unchanged if theirs is ours else None)


def outgoing(ours: type[Message], theirs: type[Message]) -> Callable[[Any, Header], Message] | None:
    """Return the conversion from a message of a stream to one of ROS, or None if there is none. Its header is for
    types that have one where ours has none."""
    if ours is theirs:
        return lambda message, _: message
    return _OUTGOING.get((ours, theirs))


def turned(scan: LaserScan, yaw: float) -> LaserScan:
    """A scan of a lidar whose zero points ``yaw`` radians to the left, as one whose zero points ahead."""
    scan.angle_min += yaw
    scan.angle_max += yaw
    return scan


class FixedFrames:
    """The transforms of ``/tf_static``, of all nodes of a robot, for a bus that keeps nothing: it has to be told of
    them again and again."""

    def __init__(self) -> None:
        self._by_child: dict[str, TransformStamped] = {}
        self._warned = False

    def add(self, message: TFMessage) -> None:
        """Take in transforms; the newest of each child frame counts. Frames beyond a bound are left out, which the
        log says once."""
        for transform in message.transforms:
            child = transform.child_frame_id
            if child in self._by_child or len(self._by_child) < _MAX_FRAMES:
                transform.header.stamp = Time()  # they hold at all times
                self._by_child[child] = transform
            elif not self._warned:
                self._warned = True
                text = "/tf_static has more than %d frames: %r and further ones are left out"
                _log.warning(text, _MAX_FRAMES, child[:100])

    @property
    def message(self) -> TFMessage | None:
        """All of them, or None if there are none."""
        return TFMessage(transforms=list(self._by_child.values())) if self._by_child else None


def _unchanged(message: Message) -> Message:
    return message


def _bare(stamped: TwistStamped) -> Twist:
    return stamped.twist


def _stamped(twist: Twist, header: Header) -> TwistStamped:
    return TwistStamped(header=header, twist=twist)


def _picture(compressed: CompressedImage) -> Image:
    """The JPEG as it is, unless it is too large."""
    data = bytes(compressed.data)
    try:
        height, width = jpeg_size(data)
    except MessageError as error:
        why = f"its format is {compressed.format!r}, and its {len(data)} bytes are no JPEG to decode: {error.why}"
        raise MessageError("", CompressedImage.msg_name, why) from error
    image = Image(header=compressed.header, height=height, width=width, encoding=JPEG, data=data)
    return image if len(data) <= MAX_PICTURE else _compressed(image)


def _smaller(image: Image) -> Image:
    """A raw picture in colours as a JPEG; grey ones and depth as they are."""
    return _compressed(image) if image.encoding in _COLOURED else image


def _compressed(image: Image) -> Image:
    """A JPEG of as good a quality as fits; of the least one, if none does."""
    pixels = rgb_from_image(image)
    for quality in _QUALITIES:
        smaller = image_from_array(pixels, JPEG, image.header, quality=quality)
        if len(smaller.data) <= MAX_PICTURE:
            break
    return smaller


_INCOMING: dict[tuple[type[Message], type[Message]], Conversion] = {
    (CompressedImage, Image): _picture,
    (Image, Image): _smaller,
    (TwistStamped, Twist): _bare,
}
_OUTGOING: dict[tuple[type[Message], type[Message]], Callable[[Any, Header], Message]] = {
    (Twist, TwistStamped): _stamped,
}
USUAL: dict[type[Message], type[Message]] = {Image: CompressedImage}
"""The types that ROS usually sends where a stream has another one."""
