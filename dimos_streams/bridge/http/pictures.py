"""``GET /pictures/{name}``: the pictures that skills have kept among the run's files."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Response

from dimos_streams.errors import MessageError
from dimos_streams.messages.picture_files import check_claim
from dimos_streams.module.kept_pictures import PICTURES
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.openapi import Described, refusals
from dimos_streams.serving.problems import ProblemError

_TYPES = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png"}
_MAX_NAME = 255
"""Maximum length of a name, in bytes."""
_FILE = {"schema": {"type": "string", "format": "binary"}}
_ANSWERS: Described = {200: {"description": "The picture.", "content": dict.fromkeys(_TYPES.values(), _FILE)}}
# Whole, whatever part is asked for: pictures are small, and a part of one shows nothing.
_HEADERS = {
    "Accept-Ranges": "none",
    "Cache-Control": "private, max-age=86400, immutable",
    "X-Content-Type-Options": "nosniff",
}


def _find(folder: Path, name: str) -> Response | None:
    """The picture of that name in a folder; None for a name that leads elsewhere, whatever is there, for one that
    can't be read, and for one that would cost a browser too much."""
    # Longer names the system does not even look for.
    if Path(name).name != name or name.startswith(".") or not name.isprintable() or len(name.encode()) > _MAX_NAME:
        return None
    path = folder / name
    media_type = _TYPES.get(path.suffix.lower())
    if media_type is None or not path.is_file() or path.is_symlink():
        return None
    try:
        data = path.read_bytes()
        check_claim(data)
    except (OSError, MessageError):  # it may have been removed meanwhile
        return None
    return Response(data, media_type=media_type, headers=_HEADERS)


def mount_pictures(app: FastAPI, run_dir: Path | None) -> None:
    """Add the route to an app."""

    @app.get(
        "/pictures/{name}",
        response_class=Response,
        response_model=None,
        responses=_ANSWERS | refusals(problem_kinds.NOT_FOUND),
    )
    def picture(name: str) -> Response:
        found = None if run_dir is None else _find(run_dir / PICTURES, name)
        if found is None:
            raise ProblemError(
                problem_kinds.NOT_FOUND, f"there is no picture {name!r} among the files of the run here"
            )
        return found
