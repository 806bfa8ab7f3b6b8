"""Picture files that are passed on as they are: the sizes that their heads claim, without decoding them.

Whoever shows such a file, a browser for instance, takes memory for as many pixels as it claims to have.
"""

from __future__ import annotations

import re
import struct

from dimos_streams.errors import MessageError
from dimos_streams.messages.sensor_msgs import Image

MAX_PIXELS = 2**25
"""The largest number of pixels, more than those of 8K video. A file of a few bytes may claim any size."""

_MAX_SCANS = 100
"""The largest number of scans of a JPEG, several times those that encoders make. Each goes over all pixels, and may
take a few bytes of the file."""
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8"
_MARKER = re.compile(rb"\xff[^\xff]")
"""A marker, behind as many bytes 0xFF as there may be: they fill."""
_SIZED = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of JPEG that begin a frame, which has a size."""
_BARE = frozenset({0x00, 0x01, *range(0xD0, 0xD9)})
"""Markers behind which no length stands; 0 is no marker."""
_SCAN, _END = 0xDA, 0xD9
_MAX_SEGMENTS = 1000
_WEBP = re.compile(
    rb"RIFF....WEBP(?:VP8X.{8}(?P<canvas>.{6})|VP8L.{5}(?P<lossless>.{4})|VP8 .{10}(?P<lossy>.{4}))", re.DOTALL
)
_OTHERS = re.compile(
    rb"RIFF....WEBP|GIF8[79]a.{4}|BM.{12}|\0\0[\1\2]\0.{2}|.{4}ftyp|.{4}(JXL|jP  )|\xff[\x0a\x4f]|II\*\0|MM\0\*|%PDF",
    re.DOTALL,
)
"""The beginnings of other files that browsers decode, whatever they are said to be: WebP of other forms, GIF, BMP,
icons, AVIF and HEIC (whatever brand comes first: browsers look at all of them), JPEG XL and 2000, TIFF and PDF."""
_14_BITS = 0x3FFF


def check_claim(data: bytes) -> None:
    """Raise ``MessageError`` for a JPEG, PNG or WebP that claims to have more than ``MAX_PIXELS``, for a JPEG of so
    many scans that decoding it takes long, and for files of other kinds that browsers decode as well, whatever they
    are called. Other data passes, since nobody decodes it."""
    check_scans(data)
    width, height = _claimed(data)
    if width * height > MAX_PIXELS:
        why = f"a file of {len(data)} bytes that claims {width}x{height} pixels, more than {MAX_PIXELS}"
        raise MessageError("", Image.msg_name, why)


def file_suffix(data: bytes) -> str | None:
    """The ending of the name of a JPEG or PNG file, whatever it is said to be; None for anything else."""
    return "jpg" if data.startswith(_JPEG) else "png" if data.startswith(_PNG) else None


def check_scans(data: bytes) -> None:
    """Raise ``MessageError`` for a JPEG of more scans than encoders make: a decoder goes over all pixels for each."""
    scans = data.count(bytes((0xFF, _SCAN))) if data.startswith(_JPEG) else 0
    if scans > _MAX_SCANS:
        why = f"a JPEG of {len(data)} bytes with {scans} scans, more than the {_MAX_SCANS} that are decoded"
        raise MessageError("", Image.msg_name, why)


def _claimed(data: bytes) -> tuple[int, int]:
    """Return width and height, or 0 where none are said."""
    if data.startswith(_PNG) and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return int(width), int(height)
    if data.startswith(_JPEG):
        return _of_jpeg(data)
    if found := _WEBP.match(data):
        return _of_webp(found)
    if _OTHERS.match(data):
        raise MessageError("", Image.msg_name, f"a file of {len(data)} bytes that is no JPEG, PNG or WebP")
    return 0, 0


def _of_webp(found: re.Match[bytes]) -> tuple[int, int]:
    """Return the width and height of a WebP, of one of its three forms."""
    if canvas := found["canvas"]:
        return int.from_bytes(canvas[:3], "little") + 1, int.from_bytes(canvas[3:], "little") + 1
    if lossless := found["lossless"]:
        sizes = int.from_bytes(lossless, "little")
        return (sizes & _14_BITS) + 1, (sizes >> 14 & _14_BITS) + 1
    width, height = struct.unpack("<HH", found["lossy"])
    return width & _14_BITS, height & _14_BITS


def _of_jpeg(data: bytes) -> tuple[int, int]:
    """Return the width and height of the first frame, found as decoders find it: what stands between segments is
    passed over. Both are 0 if there is none."""
    at = len(_JPEG)
    for _ in range(_MAX_SEGMENTS):
        found = _MARKER.search(data, at)
        if found is None or found.start() + 9 > len(data):
            return 0, 0
        at = found.start()
        marker = data[at + 1]
        if marker in _BARE:
            at += 2
        elif marker in _SIZED:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return int(width), int(height)
        elif marker in (_SCAN, _END):
            return 0, 0
        else:
            at += 2 + int(struct.unpack_from(">H", data, at + 2)[0])
    raise MessageError("", Image.msg_name, f"a JPEG of {len(data)} bytes with more than {_MAX_SEGMENTS} segments")
