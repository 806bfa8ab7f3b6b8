"""Tokens of HTTP requests: in the header ``Authorization`` (RFC 6750), or in the query where there can be none."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs, unquote_plus

_IN_QUERIES = "token"


def bearer_headers(token: str | None) -> dict[str, str]:
    """The headers that carry a token: none without one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def bearer_token(authorization: str) -> str | None:
    """The token of the header's value; None if it is of another scheme, or empty."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def has_token(token: str, authorization: str, query: str) -> bool:
    """Return whether a request has the token: by its header or, if that names none, as ``?token=`` of its query."""
    given = bearer_token(authorization)
    if given is None:
        given = parse_qs(query).get(_IN_QUERIES, [""])[0].strip()
    return hmac.compare_digest(given.encode(), token.encode())


def without_token(query: str) -> str:
    """The query without the token that ``has_token`` would find in it, however its name is escaped: for who passes a
    request on to somebody whom the token is not for."""
    return "&".join(part for part in query.split("&") if unquote_plus(part.partition("=")[0]) != _IN_QUERIES)
