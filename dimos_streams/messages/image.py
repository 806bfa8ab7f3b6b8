"""Pictures as ``sensor_msgs.Image`` messages.

Encodings: ``jpeg`` (compressed RGB), ``rgb8``, ``bgr8``, ``rgba8``, ``bgra8``, ``mono8``, ``mono16``, and for depth
``16UC1`` (millimetres, 0 = no depth) and ``32FC1`` (metres, NaN or nothing above 0 = no depth). In arrays colour is
always RGB, whatever its order in the message; the opacity of a pixel is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dimos_streams.errors import MessageError, UserError, suggest
from dimos_streams.messages.picture_files import MAX_PIXELS, check_scans
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.messages.std_msgs import Header

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

JPEG = "jpeg"
FILES = frozenset({JPEG, "png"})
"""Encodings of which the data is a file, as browsers show it."""
DEPTH = "16UC1"
DEPTH_IN_METRES = "32FC1"


_BYTES = {"uint8": 1, "uint16": 2, "float32": 4}


@dataclass(frozen=True, slots=True)
class _Pixel:
    """The layout of one pixel of an encoding, in a message and in an array."""

    dtype: str
    colours: str = ""
    """The order of colours in the message; empty for one value."""

    @property
    def bytes(self) -> int:
        return (len(self.colours) or 1) * _BYTES[self.dtype]


_PIXELS = {
    JPEG: _Pixel("uint8", "rgb"),
    "rgb8": _Pixel("uint8", "rgb"),
    "bgr8": _Pixel("uint8", "bgr"),
    "rgba8": _Pixel("uint8", "rgba"),
    "bgra8": _Pixel("uint8", "bgra"),
    "mono8": _Pixel("uint8"),
    "mono16": _Pixel("uint16"),
    DEPTH: _Pixel("uint16"),
    DEPTH_IN_METRES: _Pixel("float32"),
}
ENCODINGS = tuple(_PIXELS)
"""The names of all known encodings."""
_OPAQUE = 255


def image_from_array(array: NDArray[Any], encoding: str, header: Header, quality: int = 80) -> Image:
    """A picture from an array of height x width (x 3 for colour, RGB): uint8, for mono16 and 16UC1 uint16, for 32FC1
    float32.

    ``quality`` is JPEG's, 1 .. 100. Raises ``MessageError`` if the encoding is unknown or the array is unfit.
    """
    import numpy as np

    pixel = _pixel(encoding)
    shaped = array.ndim == 3 and array.shape[2] == 3 if pixel.colours else array.ndim == 2
    if array.dtype != pixel.dtype or not shaped or array.size == 0:
        raise _bad(f"{encoding} needs {_wanted(pixel)}, got {array.dtype} of shape {array.shape}")
    height, width = array.shape[:2]
    if encoding == JPEG:
        array = np.ascontiguousarray(array)
        data, step = _jpeg(array, quality), 0
    else:
        data, step = _ordered(array, pixel.colours).tobytes(), width * pixel.bytes
    return Image(header=header, height=height, width=width, encoding=encoding, step=step, data=data)


def array_from_image(image: Image) -> NDArray[Any]:
    """The pixels of a picture as a new array, of the shape and type that ``image_from_array`` takes.

    Raises ``MessageError`` if the encoding is unknown, the data damaged, or its size not what the fields say.
    """
    pixel = _pixel(image.encoding)
    if image.height <= 0 or image.width <= 0:
        raise _bad(f"it is {image.width}x{image.height} pixels")
    return _jpeg_array(image) if image.encoding == JPEG else _raw_array(image, pixel)


def rgb_from_image(image: Image) -> NDArray[Any]:
    """The pixels of a camera's picture, for a detector or a JPEG: height x width x 3, RGB, uint8, grey ones as well.

    Raises ``MessageError`` as ``array_from_image`` does, and for depth.
    """
    import numpy as np

    if image.encoding in (DEPTH, DEPTH_IN_METRES):
        raise _bad(f"encoding {image.encoding!r} is depth, not what a camera sees")
    pixels = array_from_image(image)
    if pixels.ndim == 3:
        return pixels
    grey = pixels if pixels.dtype == np.uint8 else (pixels >> 8).astype(np.uint8)
    return np.stack([grey] * 3, axis=-1)


def metres_from_image(image: Image) -> NDArray[np.float32]:
    """The depths of a picture: height x width, float32, metres, NaN where nothing was measured.

    ``mono16`` is taken for millimetres, too: some cameras call them so. Raises ``MessageError`` as
    ``array_from_image`` does, and for what is no depth.
    """
    import numpy as np

    if image.encoding not in (DEPTH, DEPTH_IN_METRES, "mono16"):
        raise _bad(f"encoding {image.encoding!r} is no depth (that is {DEPTH}, in mm, or {DEPTH_IN_METRES}, in m)")
    pixels = array_from_image(image)
    if image.encoding == DEPTH_IN_METRES:
        return np.where(np.isfinite(pixels) & (pixels > 0), pixels, np.float32(np.nan))
    return np.where(pixels > 0, pixels.astype(np.float32) / np.float32(1000), np.float32(np.nan))


def jpeg_size(data: bytes) -> tuple[int, int]:
    """The height and width that a JPEG's header says, to be looked at before it is decoded.

    Raises ``MessageError`` if it is no JPEG, of more than ``MAX_PIXELS``, or of too many scans.
    """
    check_scans(data)
    try:
        height, width, *_ = _simplejpeg().decode_jpeg_header(data)
    except ValueError as error:
        raise _bad(f"damaged JPEG of {len(data)} bytes: {error}") from error
    if height * width > MAX_PIXELS:
        raise _bad(f"a JPEG of {width}x{height} pixels, more than the {MAX_PIXELS} that are decoded")
    return height, width


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
    if not pixel.colours:
        return pixels.astype(pixel.dtype)
    coloured = pixels.reshape(image.height, image.width, len(pixel.colours))
    if pixel.colours == "rgb":
        return coloured.copy()
    return np.stack([coloured[..., pixel.colours.index(colour)] for colour in "rgb"], axis=-1)


def _ordered(array: NDArray[Any], colours: str) -> NDArray[Any]:
    """The values of a picture as messages have them: little-endian, colours in their order."""
    import numpy as np

    if colours in ("", "rgb"):
        return array.astype(array.dtype.newbyteorder("<"), copy=False)
    opaque = np.full(array.shape[:2], _OPAQUE, array.dtype)
    return np.stack([opaque if colour == "a" else array[..., "rgb".index(colour)] for colour in colours], axis=-1)


def _jpeg(array: NDArray[Any], quality: int) -> bytes:
    try:
        data: bytes = _simplejpeg().encode_jpeg(array, quality=quality, colorspace="RGB")
    except ValueError as error:
        raise _bad(f"{array.shape[1]}x{array.shape[0]} pixels are no JPEG's: {error}") from error
    return data


def _jpeg_array(image: Image) -> NDArray[Any]:
    data = bytes(image.data)
    height, width = jpeg_size(data)
    if (height, width) != (image.height, image.width):
        raise _bad(f"the JPEG is {width}x{height} pixels, the message says {image.width}x{image.height}")
    try:
        pixels: NDArray[Any] = _simplejpeg().decode_jpeg(data, colorspace="RGB")
    except ValueError as error:
        raise _bad(f"damaged JPEG of {len(data)} bytes: {error}") from error
    return pixels


def _pixel(encoding: str) -> _Pixel:
    if encoding not in _PIXELS:
        raise _bad(f"unknown encoding {encoding!r}{suggest(encoding, _PIXELS)} (known: {', '.join(_PIXELS)})")
    return _PIXELS[encoding]


def _wanted(pixel: _Pixel) -> str:
    return f"{pixel.dtype} of shape (height, width{', 3' if pixel.colours else ''})"


def _bad(why: str) -> MessageError:
    return MessageError("", Image.msg_name, why)


def _simplejpeg() -> Any:
    try:
        import simplejpeg
    except ImportError as error:
        raise UserError("JPEG pictures need simplejpeg: pip install 'dimos-streams[sim]'") from error
    return simplejpeg
