"""Pictures and time stamps in messages."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.image import array_from_image, image_from_array, metres_from_image, rgb_from_image
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.messages.std_msgs import Header, Time
from dimos_streams.messages.time import header, utime_of

HEADER = header("camera_optical", 1_600_000_000_123_456)


def gradient() -> NDArray[np.uint8]:
    """A smooth picture, red to the right and green downwards, that JPEG keeps well."""
    rows, columns = np.mgrid[0:48, 0:64]
    return np.stack([columns * 3, rows * 4, np.full_like(rows, 40)], axis=-1).astype(np.uint8)


@pytest.mark.parametrize(
    ("encoding", "array"),
    [
        ("rgb8", gradient()),
        ("rgb8", gradient()[::2, ::-1]),
        ("mono8", gradient()[..., 0]),
        ("bgr8", gradient()),
        ("rgba8", gradient()),
        ("bgra8", gradient()[::2, ::-1]),
        ("mono16", np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000),
        ("16UC1", np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000),
        ("16UC1", np.arange(12, dtype=np.dtype(">u2")).reshape(3, 4).astype(np.uint16)),
        ("32FC1", np.arange(12, dtype=np.float32).reshape(3, 4) / 3),
    ],
)
def test_uncompressed_pictures_survive_the_wire(encoding: str, array: NDArray[Any]) -> None:
    image = decode(Image, encode(image_from_array(array, encoding, HEADER)))
    assert (image.height, image.width, image.encoding, image.header) == (*array.shape[:2], encoding, HEADER)
    back = array_from_image(image)
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)
    back[0, 0] = 1  # it is the receiver's own


@pytest.mark.feature("K2")
@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("rgb8", [1, 2, 3]),
        ("bgr8", [3, 2, 1]),
        ("rgba8", [1, 2, 3, 255]),
        ("bgra8", [3, 2, 1, 255]),
    ],
)
def test_colours_are_in_the_order_of_the_encoding(encoding: str, data: list[int]) -> None:
    one_pixel = np.array([[[1, 2, 3]]], np.uint8)
    image = image_from_array(one_pixel, encoding, HEADER)
    assert (list(image.data), image.step) == (data, len(data))
    padded = Image(height=2, width=1, encoding=encoding, step=len(data) + 1, data=bytes([*data, 0, *data, 0]))
    assert array_from_image(padded).tolist() == [[[1, 2, 3]], [[1, 2, 3]]]


def test_jpeg_keeps_the_picture_and_the_order_of_its_colours() -> None:
    array = gradient()
    image = decode(Image, encode(image_from_array(array, "jpeg", HEADER, quality=95)))
    back = array_from_image(image)
    assert back.dtype == np.uint8
    assert (back.shape, image.step) == (array.shape, 0)
    assert np.abs(back.astype(int) - array).max() < 20
    coarse = image_from_array(array, "jpeg", HEADER, quality=10)
    assert len(coarse.data) < len(image.data)


@pytest.mark.feature("K2")
def test_a_grey_picture_is_shown_as_a_coloured_one_and_depth_is_not() -> None:
    grey = np.array([[0, 7, 255]], np.uint8)
    for image in (
        image_from_array(grey, "mono8", HEADER),
        image_from_array(grey.astype(np.uint16) * 256 + 99, "mono16", HEADER),
        image_from_array(np.stack([grey] * 3, axis=-1), "bgra8", HEADER),
    ):
        assert rgb_from_image(image).tolist() == [[[0, 0, 0], [7, 7, 7], [255, 255, 255]]]
    for encoding, depth in (("16UC1", grey.astype(np.uint16)), ("32FC1", grey.astype(np.float32))):
        with pytest.raises(MessageError, match=f"encoding '{encoding}' is depth, not what a camera sees"):
            rgb_from_image(image_from_array(depth, encoding, HEADER))


@pytest.mark.parametrize(
    ("encoding", "values"),
    [
        ("16UC1", np.array([[0, 1500]], np.uint16)),
        ("mono16", np.array([[0, 1500]], np.uint16)),
        ("32FC1", np.array([[np.nan, 1.5]], np.float32)),
        ("32FC1", np.array([[np.inf, 1.5]], np.float32)),
        ("32FC1", np.array([[-1.0, 1.5]], np.float32)),
        ("32FC1", np.array([[0.0, 1.5]], np.float32)),
    ],
)
def test_depth_is_in_metres_and_unknown_where_nothing_was_measured(encoding: str, values: NDArray[Any]) -> None:
    metres = metres_from_image(image_from_array(values, encoding, HEADER))
    assert metres.dtype == np.float32
    assert np.isnan(metres[0, 0])
    assert metres[0, 1] == 1.5


def test_a_picture_in_colour_is_no_depth() -> None:
    with pytest.raises(MessageError, match="encoding 'bgr8' is no depth"):
        metres_from_image(image_from_array(gradient(), "bgr8", HEADER))


def test_padded_rows_and_big_endian_pixels_are_understood() -> None:
    image = Image(height=2, width=1, encoding="16UC1", is_bigendian=1, step=3, data=b"\x01\x02_\x03\x04_")
    assert array_from_image(image).tolist() == [[0x0102], [0x0304]]


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (Image(height=2, width=2, encoding="mono8", step=2, data=b"abc"), "2 rows of 2 bytes expected"),
        (Image(height=2, width=2, encoding="mono8", step=1, data=b"ab"), "step is 1"),
        (Image(height=-1, width=2, encoding="mono8", step=2, data=b""), "it is 2x-1 pixels"),
        (Image(height=2, width=2, encoding="mono9", step=2, data=b"abcd"), "did you mean 'mono8'?"),
        (Image(height=2, width=2, encoding="jpeg", data=b""), "damaged JPEG"),
        (Image(height=2, width=2, encoding="jpeg", data=b"\xff\xd8 nonsense"), "damaged JPEG"),
    ],
)
def test_pictures_that_contradict_themselves_are_errors(image: Image, why: str) -> None:
    with pytest.raises(MessageError) as caught:
        array_from_image(image)
    assert why in caught.value.why


@pytest.mark.parametrize("keep", [0, 2, 20, 300, -100, -2])
def test_a_truncated_jpeg_is_an_error(keep: int) -> None:
    image = image_from_array(gradient(), "jpeg", HEADER)
    image.data = image.data[:keep]
    with pytest.raises(MessageError, match="damaged JPEG"):
        array_from_image(image)


@pytest.mark.slow
@settings(deadline=None)
@given(position=st.integers(0, 900), value=st.integers(0, 255))
def test_a_damaged_jpeg_gives_a_picture_or_a_message_error(position: int, value: int) -> None:
    image = image_from_array(gradient(), "jpeg", HEADER)
    data = bytearray(image.data)
    data[position % len(data)] = value
    image.data = bytes(data)
    with contextlib.suppress(MessageError):
        assert array_from_image(image).shape == (48, 64, 3)


def claiming(width: int, height: int) -> bytes:
    """A small JPEG whose header claims a size."""
    data = bytearray(bytes(image_from_array(gradient(), "jpeg", HEADER).data))
    size = data.index(b"\xff\xc0") + 5
    data[size : size + 4] = struct.pack(">HH", height, width)
    return bytes(data)


def test_a_jpeg_that_claims_to_be_huge_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simplejpeg.decode_jpeg", lambda *_, **__: pytest.fail("it was decoded"))
    image = Image(height=40_000, width=40_000, encoding="jpeg", data=claiming(40_000, 40_000))
    with pytest.raises(MessageError, match="a JPEG of 40000x40000 pixels, more than the 33554432 that are decoded"):
        array_from_image(image)


def test_a_jpeg_of_another_size_than_the_message_says_is_an_error() -> None:
    image = image_from_array(gradient(), "jpeg", HEADER)
    image.width = 63
    with pytest.raises(MessageError, match="the JPEG is 64x48 pixels, the message says 63x48"):
        array_from_image(image)


@pytest.mark.parametrize(
    ("encoding", "array"),
    [
        ("jpeg", np.zeros((4, 4), np.uint8)),
        ("rgb8", np.zeros((4, 4, 4), np.uint8)),
        ("mono8", np.zeros((4, 4), np.float64)),
        ("16UC1", np.zeros((4, 4), np.uint8)),
        ("mono8", np.zeros((0, 4), np.uint8)),
        ("bgr8", np.zeros((4, 4), np.uint8)),
        ("bgra8", np.zeros((4, 4, 4), np.uint8)),
        ("mono16", np.zeros((4, 4), np.uint8)),
        ("mono16", np.zeros(4, np.uint16)),
        ("32FC1", np.zeros((4, 4), np.float64)),
        ("yuv422", np.zeros((4, 4, 3), np.uint8)),
    ],
)
def test_arrays_that_do_not_fit_the_encoding_are_errors(encoding: str, array: NDArray[Any]) -> None:
    with pytest.raises(MessageError, match=encoding):
        image_from_array(array, encoding, HEADER)


@settings(deadline=None)
@given(utime=st.integers(-(2**31) * 1_000_000, 2**31 * 1_000_000 - 1))
def test_time_stamps_keep_microseconds(utime: int) -> None:
    assert utime_of(decode(Header, encode(header("odom", utime)))) == utime


def test_header_has_frame_and_stamp() -> None:
    assert header("odom", 1_500_000) == Header(frame_id="odom", stamp=Time(sec=1, nsec=500_000_000))
