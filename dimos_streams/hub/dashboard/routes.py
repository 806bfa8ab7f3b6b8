"""The page's files as they are served."""

from __future__ import annotations

from fastapi import FastAPI

from dimos_streams.bridge.http.dashboard.routes import serving

_FILES = {"/": "hub.html", "/dashboard/hub.css": "hub.css", "/dashboard/hub.js": "hub.js"}
PATHS = frozenset(_FILES)
"""The files that are served to anybody: they hold no secret."""


def mount_dashboard(app: FastAPI) -> None:
    """Add the routes to an app; the files are read now."""
    for path, name in _FILES.items():
        app.add_api_route(path, serving(__package__, name), methods=["GET"], include_in_schema=False)
