"""What no page of ours may do in a browser, whatever it is tested for."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, WebError, WebSocket

_INSIDE = frozenset({"data", "blob"})
_HOST = "127.0.0.1"


class Complaints:
    """Errors and warnings on the console (the browser writes violations of the policy there), exceptions that nobody
    caught, and whatever was asked of another machine."""

    def __init__(self, context: BrowserContext) -> None:
        self._made: list[str] = []
        self._expected: list[str] = []
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)
        context.on("page", self._on_page)

    def expect(self, pattern: str) -> None:
        """Let pass what a regular expression is found in: the test makes it happen."""
        self._expected.append(pattern)

    @property
    def made(self) -> list[str]:
        """All that were not expected."""
        return [text for text in self._made if not any(re.search(pattern, text) for pattern in self._expected)]

    def taken(self) -> list[str]:
        """The same, and those are forgotten."""
        made, self._made = self.made, []
        return made

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            where = message.location
            self._made.append(f"{message.type}: {message.text} ({where['url']}:{where['lineNumber']})")

    def _on_error(self, error: WebError) -> None:
        self._made.append(f"not caught: {error.error.stack or error.error}")

    def _on_request(self, request: Request) -> None:
        self._ask(request.url)

    def _on_page(self, page: Page) -> None:
        page.on("websocket", self._on_socket)

    def _on_socket(self, socket: WebSocket) -> None:
        self._ask(socket.url)

    def _ask(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in _INSIDE and parts.hostname != _HOST:
            self._made.append(f"asked for {url}")
