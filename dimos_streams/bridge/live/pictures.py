"""Pictures as browsers show them: a JPEG of whatever a camera sends otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.image import (
    DEPTH,
    DEPTH_IN_METRES,
    JPEG,
    image_from_array,
    metres_from_image,
    rgb_from_image,
)
from dimos_streams.messages.sensor_msgs import CompressedImage, Image
from dimos_streams.messages.std_msgs import Header

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_QUALITY = 80
_FORMATS = {"jpeg": "jpeg", "jpg": "jpeg", "png": "png"}


def jpeg_of(image: Image, channel: str) -> bytes:
    """The JPEG of a picture in any other encoding, without loss of its size. Depth is grey: the nearer, the brighter.

    Raises ``MessageError`` for an encoding that is not known, and where the data is not what the fields say.
    """
    try:
        pixels = _grey(image) if image.encoding in (DEPTH, DEPTH_IN_METRES) else rgb_from_image(image)
        return bytes(image_from_array(pixels, JPEG, Header(), quality=_QUALITY).data)
    except UserError as error:  # nothing that makes JPEGs is installed
        raise MessageError(channel, image.msg_name, str(error)) from error
    except MessageError as error:
        raise MessageError(channel, image.msg_name, error.why) from error


def compressed_format(image: CompressedImage, channel: str) -> str:
    """``"jpeg"`` or ``"png"``. Raises ``MessageError`` for what browsers do not show."""
    # ROS writes "bgr8; jpeg compressed bgr8".
    named = [_FORMATS[word] for word in image.format.lower().replace(";", " ").split() if word in _FORMATS]
    if not named:
        raise MessageError(channel, image.msg_name, f"format {image.format[:100]!r} is not shown; valid: jpeg, png")
    return named[0]


def _grey(image: Image) -> NDArray[np.uint8]:
    import numpy as np

    metres = metres_from_image(image)
    measured = metres[np.isfinite(metres)]
    farthest = float(measured.max()) if measured.size else 1.0
    nearness: NDArray[Any] = 1.0 - np.nan_to_num(metres, nan=farthest) / farthest
    grey = (nearness * 255).astype(np.uint8)
    return np.stack([grey] * 3, axis=-1)
