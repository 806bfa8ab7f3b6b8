"""``GET /pictures/{name}``: what skills have kept, and nothing else of the run's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from dimos_streams.bridge.http import problems
from dimos_streams.bridge.http.pictures import mount_pictures
from dimos_streams.bridge.http.route import BridgeRoute


def client(run_dir: Path | None) -> TestClient:
    app = FastAPI()
    app.router.route_class = BridgeRoute
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
    "name",
    [
        "other.jpg",
        "..%2Fjournal.sqlite",
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
    for other in ("journal.sqlite", "pictures/.hidden.jpg", "pictures/notes.txt"):
        (tmp_path / other).write_bytes(b"secret")
    answer = client(tmp_path).get(f"/pictures/{name}")
    assert answer.status_code == 404
    assert b"secret" not in answer.content


def test_a_run_without_files_has_no_pictures() -> None:
    answer = client(None).get("/pictures/observe-12.jpg")
    assert "there is no picture 'observe-12.jpg' among the files of the run here" in answer.json()["detail"]
