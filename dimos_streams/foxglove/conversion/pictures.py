"""Pictures, and what was found in them."""

from __future__ import annotations

import base64
import logging
import math

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError
from dimos_streams.foxglove.conversion.form import Form, TopicContext, Value, stamp_of
from dimos_streams.messages.detections import box_of, title_of
from dimos_streams.messages.image import FILES
from dimos_streams.messages.picture_files import MAX_PIXELS, check_claim
from dimos_streams.messages.sensor_msgs import CameraInfo, CompressedImage, Image
from dimos_streams.messages.vision_msgs import Detection2DArray

_LINE_LOOP = 2
_log = LimitedLog(logging.getLogger(__name__))
_GREEN = {"r": 0.1, "g": 0.9, "b": 0.2, "a": 1.0}
_DARK = {"r": 0.0, "g": 0.0, "b": 0.0, "a": 0.6}


def compressed(image: CompressedImage, context: TopicContext) -> Value | None:
    """A compressed picture."""
    return _file(image, image.format, context)


def _compressed(image: Image, context: TopicContext) -> Value | None:
    return _file(image, image.encoding, context)


def _file(image: Image | CompressedImage, format: str, context: TopicContext) -> Value | None:
    """Return the picture, or None if it would take all memory of those who show it."""
    try:
        check_claim(image.data)
    except MessageError as error:
        _log.warning("not shown: %s", error)
        return None
    return {**context.stamped(image.header), "data": _text(image.data), "format": format}


def _raw(image: Image, context: TopicContext) -> Value | None:
    if image.width * image.height > MAX_PIXELS:
        claim = f"{len(image.data)} bytes that claim {image.width}x{image.height} pixels, more than {MAX_PIXELS}"
        _log.warning("not shown: %s", claim)
        return None
    return {
        **context.stamped(image.header),
        "width": image.width,
        "height": image.height,
        "encoding": image.encoding,
        "step": image.step,
        "data": _text(image.data),
    }


_COMPRESSED = (Form("", "foxglove.CompressedImage", _compressed),)
_RAW = (Form("", "foxglove.RawImage", _raw),)


def forms_of_image(image: Image) -> tuple[Form, ...]:
    """Return the forms in which an ``Image`` is shown: its pixels may be compressed, which only it says."""
    return _COMPRESSED if image.encoding in FILES else _RAW


def calibration(info: CameraInfo, context: TopicContext) -> Value:
    """The intrinsics of a camera."""
    arrays = {name: [finite(value) for value in getattr(info, name)] for name in "DKRP"}
    size = {"width": info.width, "height": info.height}
    return {**context.stamped(info.header), **size, "distortion_model": info.distortion_model, **arrays}


def boxes(detections: Detection2DArray, context: TopicContext) -> Value:
    """A box with a name around each thing that was found; one that lies nowhere is left out."""
    stamp = stamp_of(detections.header)
    points, texts = [], []
    for one in detections.detections:
        left, top, right, bottom = box = box_of(one)
        if not all(map(math.isfinite, box)):
            continue
        corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
        loop = [{"x": x, "y": y} for x, y in corners]
        points.append({**stamp, "type": _LINE_LOOP, "points": loop, "outline_color": _GREEN, "thickness": 1.5})
        texts.append(
            {
                **stamp,
                "position": loop[0],
                "text": title_of(one),
                "font_size": 10.0,
                "text_color": _GREEN,
                "background_color": _DARK,
            }
        )
    return {"circles": [], "points": points, "texts": texts}


def finite(value: float) -> float:
    """The number, or 0 if it is not finite: Foxglove's own schemas have no other numbers."""
    return value if math.isfinite(value) else 0.0


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
