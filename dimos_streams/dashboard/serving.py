"""The page's files as they are served: below ``/dashboard/``, and the page itself at ``/``."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

from fastapi import FastAPI, HTTPException, Response

from dimos_streams.dashboard.linking import linked

Mode = Literal["live", "recording"]
"""The kind of page: for a live run, or for a recording of one, to which no orders can be given."""

_PAGE = files(__package__) / "page"
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "mjs": "text/javascript"}
_IMPORT_MAP = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)
_LIVE = b'data-mode="live"'


def _found(folder: Traversable, above: str = "") -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _found(each, f"{above}{each.name}/")
        elif each.name.rpartition(".")[2] in _TYPES:
            yield above + each.name, each


FILES: Mapping[str, Traversable] = dict(sorted(_found(_PAGE)))
"""The page's files by their paths in the page's folder, ``index.html`` among them."""
SCRIPT = "page.js"
"""The name of all scripts of the page as one; each is a file of its own as well."""
PATHS = frozenset(("/", f"/dashboard/{SCRIPT}", *(f"/dashboard/{name}" for name in FILES if name != "index.html")))
"""The paths that anybody is served: the files hold no secret, and what the page shows comes over ``WS /monitor``."""


@functools.cache
def script() -> bytes:
    """Return the content of ``SCRIPT``. Raises ``ValueError`` if the scripts can't be linked."""
    sources = {name: each.read_text(encoding="utf-8") for name, each in FILES.items() if name.endswith(".js")}
    return linked("main.js", sources).encode()


def mount_dashboard(app: FastAPI, mode: Mode = "live") -> None:
    """Add the page's routes to an app."""
    others = {name: each.read_bytes for name, each in FILES.items() if name != "index.html"}
    mount_page(app, FILES["index.html"], {**others, SCRIPT: script}, mode)


def mount_page(
    app: FastAPI, index: Traversable, others: Mapping[str, Callable[[], bytes]], mode: Mode = "live"
) -> None:
    """Serve ``index`` at ``/`` and the others below ``/dashboard/``; browsers let nothing else into the page."""
    policy = policy_of(index)

    async def page() -> Response:
        return _response(index.name, index.read_bytes().replace(_LIVE, f'data-mode="{mode}"'.encode()), policy)

    def file(path: str) -> Response:
        if path not in others:
            raise HTTPException(404, f"the page has no file {path!r}")
        return _response(path, others[path](), policy)

    app.add_api_route("/", page, methods=["GET"], include_in_schema=False)
    app.add_api_route("/dashboard/{path:path}", file, methods=["GET"], include_in_schema=False)


def policy_of(index: Traversable) -> str:
    """The page's Content-Security-Policy: nothing from elsewhere, nothing inline but its import map, and no text that
    becomes HTML, whatever robots and models say.
    """
    maps = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in _maps(index)]
    return "; ".join(
        (
            "default-src 'none'",
            " ".join(("script-src 'self'", *(f"'sha256-{digest}'" for digest in maps))),
            "style-src 'self'",
            "connect-src 'self'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _maps(index: Traversable) -> list[bytes]:
    return _IMPORT_MAP.findall(index.read_bytes())


def _response(name: str, content: bytes, policy: str) -> Response:
    headers = {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)
