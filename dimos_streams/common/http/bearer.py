"""Tokens of HTTP requests: in the header ``Authorization`` (RFC 6750), or where there can be none in the subprotocols
that a WebSocket asks for, or in the query.

Besides, the files that they come from."""

from __future__ import annotations

import base64
import binascii
import functools
import hmac
import logging
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import parse_qs, unquote_plus, urlsplit

from dimos_streams.common.process.disk import open_small
from dimos_streams.common.process.loopback import is_loopback
from dimos_streams.common.secrets import checked, know, readable_by_all

SUBPROTOCOL = "dimos-streams"
"""The subprotocol that a server chooses where a client offers it: browsers end a connection where none is chosen."""
_IN_SUBPROTOCOLS = "bearer."
"""Stands before the token, in base64url, in the name of a subprotocol, which is never chosen."""
_IN_QUERIES = "token"
_HEADER = b"authorization"
_NO_TOKEN = "Bearer "
"""The header of somebody who says that this is their token, and names none."""
_TLS = ("https", "wss")
_MAX_FILE = 64 * 1024
"""Maximum size of a file that has a token, in bytes."""

_logger = logging.getLogger(__name__)


def token_in(file: Path, *, or_pipe: bool = False) -> str:
    """The token that a file has. The log says once if every user of the machine can read that file.

    A pipe, as that of a password manager, is waited for with ``or_pipe``, and is otherwise refused: it gives a token
    once, and one to which nobody writes would hold up whoever reads it. Raises ``OSError`` and ``UnicodeDecodeError``
    for a file that can't be read, and ``UserError`` for a text that can be no token.
    """
    with file.open("rb") if or_pipe else open_small(file) as opened:
        found = opened.read(_MAX_FILE + 1)
    if len(found) > _MAX_FILE:
        raise OSError(f"{file} has more than {_MAX_FILE} bytes")
    token = found.decode().strip()
    know(checked(token, f"the token in {file}"))
    _warn_of_readers(file)
    return token


@functools.cache
def _warn_of_readers(file: Path) -> None:
    if text := readable_by_all(file, "the token"):
        _logger.warning("%s", text)


def overheard_at(url: str) -> str:
    """The host of another machine to which a URL leads without TLS, so that a token can be read on the way; empty for
    any other URL."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return "" if parts.scheme in _TLS or is_loopback(host) else host


def bearer_headers(token: str | None) -> dict[str, str]:
    """The headers that carry a token: none without one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def bearer_token(authorization: str) -> str | None:
    """The token of the header's value; None if it is of another scheme, or empty."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def authorization_in(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The value of a request's header ``Authorization``, empty without one. Of several none counts, and whoever sends
    them has no token by that header or otherwise."""
    found = [value.decode("latin-1") for name, value in headers if name.lower() == _HEADER]
    return found[0] if len(found) == 1 else _NO_TOKEN if found else ""


def subprotocol_token(offered: Iterable[str]) -> str | None:
    """The token among the subprotocols that a WebSocket asks for; None if there is none, empty for several and for
    what is no base64url."""
    found = [name for name in offered if name.startswith(_IN_SUBPROTOCOLS)]
    if not found:
        return None
    if len(found) > 1:
        return ""
    text = found[0].removeprefix(_IN_SUBPROTOCOLS).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars="-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def has_token(token: str, authorization: str, query: str, subprotocols: Iterable[str] = ()) -> bool:
    """Return whether a request has the token: by its header or, if that names none, by the subprotocols that it asks
    for or, if none of those names one, as ``?token=`` of its query. Of several in one of these none counts: which one
    does would be anybody's guess."""
    given = bearer_token(authorization)
    if given is None:
        given = subprotocol_token(subprotocols)
    if given is None:
        named = parse_qs(query, keep_blank_values=True).get(_IN_QUERIES, [])
        given = named[0].strip() if len(named) == 1 else ""
    return hmac.compare_digest(given.encode(), token.encode())


def without_token(query: str) -> str:
    """The query without the token that ``has_token`` would find in it, however its name is escaped: for requests that
    are passed on to a server that the token is not for."""
    return "&".join(part for part in query.split("&") if unquote_plus(part.partition("=")[0]) != _IN_QUERIES)
