"""What caches between a server and its clients may keep."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient

from dimos_streams.bridge.http.pictures import mount_pictures
from dimos_streams.serving import problems
from dimos_streams.serving.server.request_guard import Guard


def test_no_cache_keeps_an_answer_that_does_not_say_for_how_long(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "observe-12.jpg").write_bytes(b"a picture")
    app = FastAPI()
    app.add_api_route("/robots", lambda: {"stopped": []})
    problems.install(app)
    mount_pictures(app, tmp_path)
    client = TestClient(Guard(app, host="127.0.0.1", token=None), base_url="http://127.0.0.1")
    foreign = {"Host": "example.org"}
    answers = [client.get("/robots"), client.get("/calls/c1"), client.get("/robots", headers=foreign)]
    assert [(each.status_code, each.headers["Cache-Control"]) for each in answers] == [
        (200, "no-store"),
        (404, "no-store"),
        (403, "no-store"),
    ]
    kept = client.get("/pictures/observe-12.jpg")
    assert kept.headers.get_list("Cache-Control") == ["private, max-age=86400, immutable"]
