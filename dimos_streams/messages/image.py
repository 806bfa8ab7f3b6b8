"""Pictures as ``sensor_msgs.Image`` messages.

Encodings: ``jpeg`` (compressed RGB), ``rgb8``, ``mono8`` and ``16UC1`` (depth in millimetres, 0 = no depth).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dimos_streams.errors import MessageError, UserError, suggest
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.messages.std_msgs import Header

if TYPE_CHECKING:
    from numpy.typing import NDArray

JPEG = "jpeg"


@dataclass(frozen=True, slots=True)
class _Pixel:
    """The layout of one pixel of an encoding in an array."""

    dtype: str
    channels: int

    @property
    def bytes(self) -> int:
        return self.channels * (2 if self.dtype == "uint16" else 1)


_PIXELS = {
    JPEG: _Pixel("uint8", 3),
    "rgb8": _Pixel("uint8", 3),
    "mono8": _Pixel("uint8", 1),
    "16UC1": _Pixel("uint16", 1),
}


def image_from_array(array: NDArray[Any], encoding: str, header: Header, quality: int = 80) -> Image:
    """A picture from an array of height x width (x 3 for colour, RGB), uint8 or, for 16UC1, uint16.

    ``quality`` is JPEG's, 1 .. 100. Raises ``MessageError`` if the encoding is unknown or the array is unfit.
    """
    import numpy as np

    pixel = _pixel(encoding)
    if array.dtype != pixel.dtype or array.ndim != (3 if pixel.channels > 1 else 2) or array.size == 0:
        raise _bad(f"{encoding} needs {_wanted(pixel)}, got {array.dtype} of shape {array.shape}")
    if pixel.channels > 1 and array.shape[2] != pixel.channels:
        raise _bad(f"{encoding} needs {_wanted(pixel)}, got {array.dtype} of shape {array.shape}")
    height, width = array.shape[:2]
    array = np.ascontiguousarray(array)
    if encoding == JPEG:
        data, step = _simplejpeg().encode_jpeg(array, quality=quality, colorspace="RGB"), 0
    else:
        data, step = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes(), width * pixel.bytes
    return Image(header=header, height=height, width=width, encoding=encoding, step=step, data=data)


def array_from_image(image: Image) -> NDArray[Any]:
    """The pixels of a picture as a new array: height x width (x 3 for RGB), uint8 or, for 16UC1, uint16.

    Raises ``MessageError`` if the encoding is unknown, the data damaged, or its size not what the fields say.
    """
    pixel = _pixel(image.encoding)
    if image.height <= 0 or image.width <= 0:
        raise _bad(f"it is {image.width}x{image.height} pixels")
    return _jpeg_array(image) if image.encoding == JPEG else _raw_array(image, pixel)


def _raw_array(image: Image, pixel: _Pixel) -> NDArray[Any]:
    import numpy as np

    row = image.width * pixel.bytes
    if image.step < row:
        raise _bad(f"step is {image.step}, but {image.width} pixels of {image.encoding} take {row} bytes")
    if len(image.data) != image.height * image.step:
        raise _bad(f"{image.height} rows of {image.step} bytes expected, data has {len(image.data)} bytes")
    rows = np.frombuffer(image.data, np.uint8).reshape(image.height, image.step)[:, :row]
    dtype = np.dtype(pixel.dtype).newbyteorder(">" if image.is_bigendian else "<")
    pixels = np.ascontiguousarray(rows).view(dtype)
    shape = (image.height, image.width, pixel.channels)[: 3 if pixel.channels > 1 else 2]
    return pixels.reshape(shape).astype(pixel.dtype)


def _jpeg_array(image: Image) -> NDArray[Any]:
    simplejpeg = _simplejpeg()
    data = bytes(image.data)
    try:
        # The size first: a damaged or hostile file could claim a picture of gigabytes.
        height, width, *_ = simplejpeg.decode_jpeg_header(data)
        if (height, width) != (image.height, image.width):
            raise _bad(f"the JPEG is {width}x{height} pixels, the message says {image.width}x{image.height}")
        pixels: NDArray[Any] = simplejpeg.decode_jpeg(data, colorspace="RGB")
    except ValueError as error:
        raise _bad(f"damaged JPEG of {len(data)} bytes: {error}") from error
    return pixels


def _pixel(encoding: str) -> _Pixel:
    if encoding not in _PIXELS:
        raise _bad(f"unknown encoding {encoding!r}{suggest(encoding, _PIXELS)} (known: {', '.join(_PIXELS)})")
    return _PIXELS[encoding]


def _wanted(pixel: _Pixel) -> str:
    return f"{pixel.dtype} of shape (height, width{', 3' if pixel.channels > 1 else ''})"


def _bad(why: str) -> MessageError:
    return MessageError("", Image.msg_name, why)


def _simplejpeg() -> Any:
    try:
        import simplejpeg
    except ImportError as error:
        raise UserError("JPEG pictures need simplejpeg: pip install 'dimos-streams[sim]'") from error
    return simplejpeg
