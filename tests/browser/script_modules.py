"""The page's script modules without the page: a blank one imports them, served and restricted as the real one is."""

from __future__ import annotations

import re
from typing import Any

import requests
from playwright.sync_api import Page, Route

_SCRIPT = re.compile(r'<script\b[^>]*\bsrc="[^"]*"[^>]*>\s*</script>|<p class="unloaded">.*?</p>')
"""What runs in the page, and the text that stands there until it runs."""


class ScriptModules:
    """Evaluates functions of the dashboard's modules."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url
        self._answer = requests.get(f"{url}/", timeout=10)
        page.route(f"{url}/", self._blank)
        self.begin()

    def begin(self) -> None:
        """A page that nobody has put anything into, with modules that nobody has used."""
        self._page.mouse.move(0, 0)
        self._page.goto(f"{self._url}/")

    def _blank(self, route: Route) -> None:
        """The real page with its policy and its import map, but nothing that runs."""
        answer = self._answer
        route.fulfill(status=answer.status_code, headers=dict(answer.headers), body=_SCRIPT.sub("", answer.text))

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
