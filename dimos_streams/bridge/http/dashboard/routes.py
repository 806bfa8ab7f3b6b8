"""The dashboard's files as they are served."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi import FastAPI, Response

_PAGE = "dashboard.html"
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_NAMES = (
    _PAGE,
    "dashboard.css",
    "dashboard.js",
    "agent_view.js",
    "link.js",
    "page_view.js",
    "parts.js",
    "robot_view.js",
    "run.js",
    "tree.js",
)
_FILES = {"/" if name == _PAGE else f"/dashboard/{name}": name for name in _NAMES}
PATHS = frozenset(_FILES)
"""The files that are served to anybody: they hold no secret, and what the page shows comes over ``WS /monitor``."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Nothing from elsewhere, nothing inline, and no text that becomes HTML, whatever robots and models say."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def mount_dashboard(app: FastAPI) -> None:
    """Add the routes to an app; the files are read now."""
    for path, name in _FILES.items():
        app.add_api_route(path, serving(__package__, name), methods=["GET"], include_in_schema=False)


def serving(package: str, name: str) -> Callable[[], Awaitable[Response]]:
    """A handler that serves a file of a package, read now, to browsers that let nothing else into the page."""
    content = (files(package) / name).read_bytes()
    media_type = _TYPES[name.rpartition(".")[2]]

    async def serve() -> Response:
        return Response(content, media_type=media_type, headers=_HEADERS)

    return serve
