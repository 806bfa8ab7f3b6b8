"""The page's script modules without the page: a blank one imports them, served and restricted as the real one is."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import requests
from playwright.sync_api import Page

_SCRIPT = re.compile(
    r'<script\b[^>]*\bsrc="[^"]*"[^>]*>\s*</script>|<link rel="modulepreload"[^>]*>|<p class="unloaded">.*?</p>'
)
"""What runs in the page, what is loaded for that, and the text that stands there until it runs."""
_OF_BODY = frozenset({"content-length", "content-encoding"})


class ScriptModules:
    """Evaluates functions of the dashboard's modules."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url
        self._answer = requests.get(f"{url}/", timeout=10)
        # Not as a route of Playwright's, which would have each request for a module go by way of it.
        self._debugger = page.context.new_cdp_session(page)
        self._debugger.on("Fetch.requestPaused", self._blank)
        self._debugger.send("Fetch.enable", {"patterns": [{"urlPattern": f"{url}/"}]})
        self.begin()

    def begin(self) -> None:
        """A page that nobody has put anything into, with modules that nobody has used."""
        self._page.mouse.move(0, 0)
        self._page.goto(f"{self._url}/")

    def _blank(self, paused: dict[str, Any]) -> None:
        """Answer with the real page, its policy and its import map, but nothing that runs."""
        answer = self._answer
        headers = [{"name": name, "value": value} for name, value in answer.headers.items() if name not in _OF_BODY]
        body = b64encode(_SCRIPT.sub("", answer.text).encode()).decode()
        given = {"requestId": paused["requestId"], "responseCode": answer.status_code}
        self._debugger.send("Fetch.fulfillRequest", {**given, "responseHeaders": headers, "body": body})

    @property
    def page(self) -> Page:
        """For canvases and elements."""
        return self._page

    def __call__(self, path: str, expression: str, value: object = None) -> Any:
        """What a function of a module gives, as JSON.

        Args:
            path: Of the module, below ``/dashboard/``.
            expression: A JavaScript function of the module and the value, such as ``(m, text) => m.clipped(text)``.
                It may return a promise.
            value: JSON for the function.
        """
        given = {"path": f"{self._url}/dashboard/{path}", "value": value}
        return self._page.evaluate(
            f"async ({{ path, value }}) => await ({expression})(await import(path), value)", given
        )
