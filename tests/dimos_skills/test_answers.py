"""What dimos' tools answer."""

from __future__ import annotations

import base64

import pytest

from dimos_streams.dimos_skills.answers import Picture, parsed_answer

_JPEG, _PNG = b"\xff\xd8 a picture", b"\x89PNG\r\n\x1a\n a picture"


@pytest.mark.parametrize(
    ("kind", "data", "pictures"),
    [
        ("image/jpeg", _JPEG, (Picture("jpg", _JPEG),)),
        ("image/jpeg", _PNG, (Picture("png", _PNG),)),
        ("image/png", b"<html>", ()),
        ("image/png", b"", ()),
        ("image/svg+xml", b"<svg/>", ()),
        (["image/png"], _PNG, ()),
    ],
)
def test_a_picture_is_what_its_data_are(kind: object, data: bytes, pictures: tuple[Picture, ...]) -> None:
    item = {"type": "image", "mimeType": kind, "data": base64.b64encode(data).decode()}
    assert parsed_answer("look", {"content": [item]}).pictures == pictures
