"""``GET /pictures/{name}``: the pictures that skills have kept among the run's files."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI, Response
from starlette.responses import FileResponse

from dimos_streams.bridge.http import problem_kinds as kinds
from dimos_streams.bridge.http.described import answers, refusals
from dimos_streams.bridge.http.problems import ProblemError

PICTURES = "pictures"
"""The folder for them in a run's directory."""
_NAME = re.compile(r"\w[\w.-]*\.jpg")
_MAX_NAME = 255
"""Bytes."""
_HEADERS = {"Cache-Control": "private, max-age=86400, immutable", "X-Content-Type-Options": "nosniff"}


def _is_name(text: str) -> bool:
    """Whether a file of the folder can have this name: longer ones the system does not even look for."""
    return _NAME.fullmatch(text) is not None and len(text.encode()) <= _MAX_NAME


def mount_pictures(app: FastAPI, run_dir: Path | None) -> None:
    """Add the route to an app."""

    @app.get(
        "/pictures/{name}",
        response_class=Response,
        response_model=None,
        responses=answers(200, "The picture.", {"type": "string", "format": "binary"}, media_type="image/jpeg")
        | refusals(kinds.NOT_FOUND),
    )
    def picture(name: str) -> Response:
        path = None if run_dir is None else run_dir / PICTURES / name
        if path is None or not _is_name(name) or not path.is_file():
            raise ProblemError(kinds.NOT_FOUND, f"there is no picture {name!r} among the files of the run here")
        return FileResponse(path, media_type="image/jpeg", headers=_HEADERS)
