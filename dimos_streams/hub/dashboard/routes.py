"""The page's files as they are served; base styles and how texts are shown are those of a run's page."""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI

from dimos_streams.dashboard.serving import FILES, mount_page

_OWN = files(__package__)
_SHARED = ("styles/base.css", "texts.js")
_FILES = {"hub.css": _OWN / "hub.css", "hub.js": _OWN / "hub.js", **{name: FILES[name] for name in _SHARED}}
PATHS = frozenset({"/", *(f"/dashboard/{name}" for name in _FILES)})
"""The files that are served to anybody: they hold no secret."""


def mount_dashboard(app: FastAPI) -> None:
    """Add the page's routes to an app."""
    mount_page(app, _OWN / "hub.html", {name: each.read_bytes for name, each in _FILES.items()})
