"""Files of pictures that claim any size."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable

import numpy as np
import pytest

from dimos_streams.errors import MessageError
from dimos_streams.messages.image import image_from_array, jpeg_size
from dimos_streams.messages.picture_files import check_claim
from dimos_streams.messages.std_msgs import Header

_PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4s", 13, b"IHDR")


def jpeg(width: int = 16, height: int = 8, *, before: bytes = b"") -> bytes:
    """A JPEG whose head says that it has this size; ``before`` stands before its frame."""
    data = bytearray(image_from_array(np.zeros((8, 16, 3), np.uint8), "jpeg", Header()).data)
    at = data.index(b"\xff\xc0")
    struct.pack_into(">HH", data, at + 5, height, width)
    return bytes(data[:at] + before + data[at:])


@pytest.mark.parametrize(
    "before",
    [b"", b"\xff" * 9, b"\xff" * 3000, b"junk", b"\xff\x01", b"\xff\xe1\x00\x06\xff\xc0\xff\xc0", b"\xff\x00"],
)
def test_what_a_jpeg_claims_is_found_where_decoders_find_it(before: bytes) -> None:
    check_claim(jpeg(before=before))
    check_claim(jpeg(8192, 4096, before=before))
    huge = jpeg(65535, 65535, before=before)
    with pytest.raises(MessageError, match="claims 65535x65535 pixels"):
        check_claim(huge)
    with pytest.raises(MessageError):
        jpeg_size(huge)


@pytest.mark.parametrize("look", [check_claim, jpeg_size])
def test_a_jpeg_of_so_many_scans_that_decoding_takes_minutes_is_not_decoded(
    look: Callable[[bytes], object],
) -> None:
    whole = jpeg()
    at = whole.index(b"\xff\xda")
    look(whole[:at] + 99 * whole[at:-2] + whole[at:])
    with pytest.raises(MessageError, match="with 101 scans, more than the 100"):
        look(whole[:at] + 100 * whole[at:-2] + whole[at:])


def test_a_png_is_looked_at_too() -> None:
    check_claim(_PNG + struct.pack(">II", 1920, 1080))
    with pytest.raises(MessageError, match="claims 100000x100000 pixels"):
        check_claim(_PNG + struct.pack(">II", 100_000, 100_000))


def webp(kind: bytes, sizes: bytes) -> bytes:
    """The head of a WebP of one of its three forms."""
    return b"RIFF\x99\x00\x00\x00WEBP" + kind + sizes


@pytest.mark.parametrize(
    ("fits", "huge"),
    [
        (webp(b"VP8X" + bytes(8), b"\x7f\x07\x00\x37\x04\x00"), webp(b"VP8X" + bytes(8), b"\xff" * 6)),
        (webp(b"VP8L" + bytes(4) + b"\x2f", b"\x7f\xc7\x0d\x01"), webp(b"VP8L" + bytes(4) + b"\x2f", b"\xff" * 4)),
        (webp(b"VP8 " + bytes(10), b"\x80\x07\x38\x04"), webp(b"VP8 " + bytes(10), b"\xff" * 4)),
    ],
)
def test_browsers_decode_a_webp_whatever_it_is_called(fits: bytes, huge: bytes) -> None:
    check_claim(fits)
    with pytest.raises(MessageError, match=r"claims 16\d{3,6}x16\d{3,6} pixels"):
        check_claim(huge)


@pytest.mark.parametrize(
    "file",
    [
        b"GIF89a\x10\x00\x10\x00",
        b"BM" + bytes(40),
        b"\x00\x00\x01\x00\x01\x00",
        b"\x00\x00\x00\x1cftypavif",
        b"\x00\x00\x00\x20ftypmif1\x00\x00\x00\x00avifmif1",
        b"\x00\x00\x00\x18ftypheic",
        b"\x00\x00\x00\x0cJXL \r\n\x87\n",
        b"\xff\x0a\xfa\x1f",
        b"\x00\x00\x00\x0cjP  \r\n\x87\n",
        b"\xff\x4f\xff\x51",
        b"II*\x00\x08\x00",
        b"MM\x00*\x00\x00",
        b"%PDF-1.7",
        webp(b"?", b""),
    ],
)
def test_files_whose_size_is_not_known_are_not_passed_on_where_browsers_decode_them(file: bytes) -> None:
    with pytest.raises(MessageError, match="is no JPEG, PNG or WebP"):
        check_claim(file)


def test_what_is_no_picture_passes_and_takes_no_time() -> None:
    for data in (
        b"",
        b"\xff\xd8",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xc0\x00",
        b"GIF89a",
        _PNG,
        b"\xff\xd8" + bytes(10_000_000),
        b"\xff\xd8" + b"\xff" * 10_000_000,
    ):
        check_claim(data)
    for many in (b"\xff\xe0\x00\x02", b"\xff\x01", b"\xff\xff\x01"):
        with pytest.raises(MessageError, match="more than 1000 segments"):
            check_claim(b"\xff\xd8" + many * 100_000)
    rng = random.Random(3)
    for _ in range(300):
        with contextlib.suppress(MessageError):
            check_claim(b"\xff\xd8" + rng.randbytes(200))
