"""``GET /pictures/{name}``: what skills have kept, and nothing else of the run's files."""

from __future__ import annotations

import struct
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from dimos_streams.bridge.http.pictures import mount_pictures
from dimos_streams.serving import problems
from dimos_streams.serving.route import StrictRoute


def client(run_dir: Path | None) -> TestClient:
    app = FastAPI()
    app.router.route_class = StrictRoute
    problems.install(app)
    mount_pictures(app, run_dir)
    return TestClient(app)


@pytest.mark.feature("I1")
def test_a_picture_of_the_run_is_served_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "observe-12.jpg").write_bytes(b"\xff\xd8 a picture")
    answer = client(tmp_path).get("/pictures/observe-12.jpg")
    assert (answer.status_code, answer.content) == (200, b"\xff\xd8 a picture")
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("robot1~observe:2-12.jpg", "image/jpeg"),
        ("two words (2).JPEG", "image/jpeg"),
        ("Küche.png", "image/png"),
    ],
)
def test_whatever_a_picture_is_called_it_is_served(tmp_path: Path, name: str, media_type: str) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / name).write_bytes(b"a picture")
    answer = client(tmp_path).get(f"/pictures/{quote(name, safe='')}")
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"a picture", media_type)


@pytest.mark.parametrize("asked", ["bytes=0-3", "bytes=0-1,4-5", "bytes=99999999-", "bytes=abc", "lines=0-1"])
def test_whatever_part_is_asked_for_the_whole_picture_comes(tmp_path: Path, asked: str) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.jpg").write_bytes(b"a picture")
    answer = client(tmp_path).get("/pictures/a.jpg", headers={"Range": asked})
    assert (answer.status_code, answer.content, answer.headers["accept-ranges"]) == (200, b"a picture", "none")


def test_a_picture_that_claims_to_be_huge_reaches_no_page(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.jpg").write_bytes(
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 30_000, 30_000)
    )
    assert client(tmp_path).get("/pictures/a.jpg").status_code == 404


def test_a_link_to_another_file_is_no_picture(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "run.json").write_bytes(b"secret")
    (tmp_path / "pictures" / "a.jpg").symlink_to(tmp_path / "run.json")
    (tmp_path / "pictures" / "b.jpg").mkdir()
    (tmp_path / "pictures" / "c.jpg").symlink_to(tmp_path / "nowhere")
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        assert client(tmp_path).get(f"/pictures/{name}").status_code == 404


@pytest.mark.parametrize(
    "name",
    [
        "other.jpg",
        "..%2Fjournal.sqlite",
        "..%2Fjournal.jpg",
        "%2Fetc%2Fhostname.jpg",
        "sub%2Fa.jpg",
        "..%5Ca.jpg",
        "a%0A.jpg",
        "a%E2%80%AE.jpg",
        "%2E.jpg",
        "picture.svg",
        "picture.jpg.html",
        "%2e%2e",
        ".hidden.jpg",
        "notes.txt",
        "a%00.jpg",
        "a" * 300 + ".jpg",
        "a" * 5000 + ".jpg",
    ],
)
def test_nothing_else_of_the_run_is(tmp_path: Path, name: str) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "sub").mkdir()
    names = (
        ".hidden.jpg",
        "notes.txt",
        "sub/a.jpg",
        "a\n.jpg",
        "a\u202e.jpg",
        "..jpg",
        "picture.svg",
        "picture.jpg.html",
    )
    for other in ("journal.sqlite", "journal.jpg", *(f"pictures/{each}" for each in names)):
        (tmp_path / other).write_bytes(b"secret")
    answer = client(tmp_path).get(f"/pictures/{name}")
    assert answer.status_code == 404
    assert b"secret" not in answer.content


def test_a_run_without_files_has_no_pictures() -> None:
    answer = client(None).get("/pictures/observe-12.jpg")
    assert "there is no picture 'observe-12.jpg' among the files of the run here" in answer.json()["detail"]
