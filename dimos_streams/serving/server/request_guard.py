"""Checks every HTTP request before the app sees it: host, origin, token, size."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dimos_streams.common.http.bearer import authorization_in, has_token
from dimos_streams.common.http.own_origin import absolute_form, is_own_origin
from dimos_streams.common.schemas.http_url import requested_host
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problem_kinds import ProblemKind
from dimos_streams.serving.problems import REPORTED, problem
from dimos_streams.serving.received import again, reads

MAX_BODY = 256 * 1024
MAX_BODIES = 16 * 1024 * 1024
"""Maximum bytes of all bodies together that have not come whole yet."""
MAX_DRAINED = 8 * 1024 * 1024
"""Maximum bytes of a too large body that are read and dropped, so that the connection stays usable."""
_BODY_TIMEOUT_S = 10.0
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
"""Methods whose bodies nobody reads here."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_VALID_HOSTS = (
    "valid: localhost, the address that it serves on, and the names in the bridge's setting `allowed_hosts`"
)
_BY_PROXY = (
    "a proxy in between has to pass on Host, and the name in it has to be in the bridge's setting `allowed_hosts`, "
    "or the hub's `--allowed-host`"
)


class Guard:
    """ASGI middleware that refuses foreign hosts and origins, requests without the token, and large bodies.

    A foreign ``Host`` is how a page in somebody's browser reaches a server on loopback (DNS rebinding); a page of
    another origin may neither read nor command. Where a browser can set no header the token may come among the
    subprotocols of a ``WebSocket``, or as ``?token=``. Reading the ``public`` paths needs no token and no
    ``Origin`` of the server's own: they are the same for everybody, and a page has to be there to say what a proxy
    keeps from it.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        token: str | None,
        token_of: str = "the run's",
        allowed_hosts: Iterable[str] = (),
        public: Iterable[str] = (),
    ) -> None:
        self._app = app
        self._public = frozenset(public)
        self._token = token
        self._token_of = token_of
        self._hosts = _LOOPBACK | {host.lower()} | {name.lower() for name in allowed_hosts}
        # An address in Host can't come from rebinding a name; which one of the machine's it is does not matter.
        self._any_address = host in ("0.0.0.0", "::", "")
        self._bodies = 0
        """Bytes of bodies that are being read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        _bring_to_origin_form(scope)
        refusal = self._refusal(scope)
        if refusal is None and scope["type"] == "http":
            try:
                receive = await self._with_body(scope, receive)
            except _BadBodyError as error:
                refusal = error.response
            except _GoneError:
                return
        if scope["type"] == "http":
            send = _for_no_cache(send)
        if refusal is None:
            await self._pass_on(scope, receive, send)
        else:
            await refusal(scope, receive, send)

    async def _with_body(self, scope: Scope, receive: Receive) -> Receive:
        """A ``receive`` with the whole body in hand, if there is one that anybody will read.

        Raises ``_BadBodyError`` if it is too large or too slow, or if too many come at once, and ``_GoneError``.
        """
        headers = dict(scope["headers"])
        has_body = b"content-length" in headers or b"transfer-encoding" in headers
        if scope["method"] in _BODILESS or not has_body:
            return receive
        # A length that is no number is refused by the server before.
        announced = int(headers.get(b"content-length", b"0"))
        asks_first = headers.get(b"expect", b"").lower() == b"100-continue"
        if announced > MAX_DRAINED or (announced > MAX_BODY and asks_first):
            raise _too_large(f"{announced}", closes=True)
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_TIMEOUT_S):
                await self._read(receive, body)
        except TimeoutError as error:
            detail = f"the body did not come within {_BODY_TIMEOUT_S:g} s"
            raise _BadBodyError(problem_kinds.TOO_SLOW, detail, closes=True) from error
        finally:
            self._bodies -= len(body)
        return again({"type": "http.request", "body": bytes(body), "more_body": False}, receive)

    async def _read(self, receive: Receive, body: bytearray) -> None:
        """Read up to the end of a body into ``body``, which counts as being read.

        One that is too large is read to its end all the same, within a bound, and dropped: a client that still sends
        when the refusal comes takes the connection for broken, and with it all that it was to be used for.
        """
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise _GoneError
            piece, more = message.get("body", b""), message.get("more_body", False)
            size += len(piece)
            if size > MAX_DRAINED:
                raise _too_large(f"more than {MAX_DRAINED}", closes=True)
            if size > MAX_BODY:
                self._bodies -= len(body)
                body.clear()
            elif self._bodies + len(piece) > MAX_BODIES:
                detail = f"bodies of {MAX_BODIES} bytes are being read already; try again"
                raise _BadBodyError(problem_kinds.TOO_MANY_BODIES, detail, closes=True)
            else:
                body += piece
                self._bodies += len(piece)
        if size > MAX_BODY:
            raise _too_large(f"{size}", closes=False)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            return  # the server ends, and has cut off whoever waited: it is nobody's mistake that is to be logged
        except Exception:
            if REPORTED not in scope:
                raise

    def _refusal(self, scope: Scope) -> Response | None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if not self._is_own(host):
            return problem(problem_kinds.FOREIGN_HOST, f"this server is not {host!r}; {_VALID_HOSTS}")
        is_public = self._is_public(scope)
        origin = headers.get(b"origin")
        if not (is_public or origin is None or is_own_origin(origin, host)):
            detail = f"pages of {origin!r} may not use this server, which was asked as {host!r}; {_BY_PROXY}"
            return problem(problem_kinds.FOREIGN_ORIGIN, detail)
        if _is_of_another_page(scope, headers):
            return problem(
                problem_kinds.FOREIGN_ORIGIN, "pages of other origins may not use this server, only lead to it"
            )
        if not (self._token is None or is_public or _has_token(scope, self._token)):
            detail = f"send {self._token_of} token as 'Authorization: Bearer ...'"
            return problem(problem_kinds.TOKEN_NEEDED, detail)
        return None

    def _is_own(self, host: str) -> bool:
        name = requested_host(host)
        if name is None or name in self._hosts:
            return name is not None
        try:
            return self._any_address and bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def _is_public(self, scope: Scope) -> bool:
        return scope["type"] == "http" and reads(scope) and scope["path"] in self._public


def _for_no_cache(send: Send) -> Send:
    """Tell caches to keep no answer that does not say itself for how long: there are proxies that keep what says
    nothing for two minutes, such as which robots are stopped."""

    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).setdefault("Cache-Control", "no-store")
        await send(message)

    return send_on


def _bring_to_origin_form(scope: Scope) -> None:
    """Give the scope of a request whose target is a whole address, as clients of proxies send it, the path and the
    host of that address (RFC 9112, 3.2.2). It stays the same object, by which the server knows the request."""
    absolute = absolute_form(scope.get("raw_path", b""))
    if absolute is None:
        return
    host, raw_path = absolute
    headers = [(b"host", host), *(header for header in scope["headers"] if header[0] != b"host")]
    scope.update(path=unquote(raw_path.decode("latin-1")), raw_path=raw_path, headers=headers)


def _has_token(scope: Scope, token: str) -> bool:
    """Return whether a request has the token; by its query only one that reads."""
    query = scope["query_string"].decode("latin-1") if reads(scope) else ""
    return has_token(token, authorization_in(scope["headers"]), query, scope.get("subprotocols", ()))


def _is_of_another_page(scope: Scope, headers: Mapping[bytes, str]) -> bool:
    """Return whether a browser says that a page of another origin asks, for a picture or a frame in it for instance:
    for those it sends no ``Origin``. Whoever follows a link, which only reads, sees the page itself."""
    if headers.get(b"sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    is_link = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == ("navigate", "document")
    return not (is_link and scope["type"] == "http" and reads(scope))


class _BadBodyError(Exception):
    def __init__(self, kind: ProblemKind, detail: str, *, closes: bool) -> None:
        """``closes`` ends the connection, on which the rest of the body would still come."""
        self.response = problem(kind, detail)
        if closes:
            self.response.headers["Connection"] = "close"


def _too_large(size: str, *, closes: bool) -> _BadBodyError:
    return _BadBodyError(
        problem_kinds.TOO_LARGE, f"the body has {size} bytes, {MAX_BODY} are possible", closes=closes
    )


class _GoneError(Exception):
    """Raised if the client has left before its body was whole. Half a request is not a request, even if it
    reads like one."""
