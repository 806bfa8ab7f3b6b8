"""Tokens of HTTP requests: in the header ``Authorization`` (RFC 6750), or in the query where there can be none."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs


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
        given = parse_qs(query).get("token", [""])[0].strip()
    return hmac.compare_digest(given.encode(), token.encode())
