"""Requests to an app that nobody serves, as a client on another machine makes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Scope


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content) if self.content else None


class Exchange:
    """One request, and what comes of it."""

    def __init__(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        token: str = "",
        *,
        on_piece: Callable[[bytes], None] = lambda piece: None,
    ) -> None:
        """``on_piece`` is called with each piece of the answer when the app gives it."""
        self.status = 0
        """That of the answer; 0 before it has come."""
        self._scope = _scope(method, path, body, token)
        self._body: bytes | None = body or b""
        self._on_piece = on_piece
        self._gone = asyncio.Event()
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def run(self, app: ASGIApp) -> None:
        """Let an app answer it."""
        try:
            await app(self._scope, self._receive, self._send)
        finally:
            self._pieces.put_nowait(None)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body of the answer, piece by piece, until it ends or is cut off."""
        while (piece := await self._pieces.get()) is not None:
            yield piece

    def leave(self) -> None:
        """Wait for nothing more of it; the app notices that."""
        self._gone.set()

    def cut(self) -> None:
        """Let nothing more of it arrive, and only half of what is on its way; the app does not notice."""
        if not self._pieces.empty() and (piece := self._pieces.get_nowait()) is not None:
            self._pieces = asyncio.Queue()
            self._pieces.put_nowait(piece[: len(piece) // 2])
        self._pieces.put_nowait(None)

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._body is None:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body" and message.get("body"):
            self._on_piece(message["body"])
            self._pieces.put_nowait(message["body"])


async def ask(
    app: ASGIApp, method: str, path: str, body: Mapping[str, Any] | bytes | None, token: str = ""
) -> Answer:
    """Ask an app something, and wait for the whole answer."""
    content = json.dumps(body).encode() if isinstance(body, Mapping) else body
    exchange = Exchange(method, path, content, token)
    await exchange.run(app)
    return Answer(exchange.status, b"".join([piece async for piece in exchange.pieces()]))


def _scope(method: str, path: str, body: bytes | None, token: str) -> Scope:
    bare, _, query = path.partition("?")
    headers = [(b"host", b"127.0.0.1")]
    if body is not None:
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if token:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": bare,
        "raw_path": bare.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", 7790),
    }
