"""Answers of HTTP servers that are not read at all: packed ones, which may unpack to any size, and redirections."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin

from dimos_streams.common.printable import printable
from dimos_streams.common.secrets import without_user

PLAIN = {"Accept-Encoding": "identity"}
"""The header of a request whose answer may not be packed."""
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_SHOWN = 300


def why_unread(url: str, status: int, headers: Mapping[str, str], *, setting: str, below: str = "") -> str | None:
    """The reason why an answer is not read, as what is said of its server, or None if it is.

    ``url`` was asked, which is ``below`` under the address in ``setting``. What was sent there is for that server
    only, so that redirections are not followed.
    """
    location = headers.get("Location", "")
    if status in _REDIRECTIONS and location:
        place = _place(url, location)
        meant = place.rstrip("/").removesuffix(below)
        hint = f"if that is meant, set {setting} to '{meant}'"
        return f"points to '{place}' (HTTP {status}), where nothing is sent; {hint}"
    return why_packed(status, headers)


def why_packed(status: int, headers: Mapping[str, str]) -> str | None:
    """The reason why an answer is not read that is packed, as what is said of its server, or None if it is not."""
    encoding = printable(headers.get("Content-Encoding", "").strip())
    if encoding.lower() not in ("", "identity"):
        return (
            f"answers with the encoding '{encoding[:_SHOWN]}' (HTTP {status}), for which nobody asked; it is not read"
        )
    return None


def _place(url: str, location: str) -> str:
    try:
        place = urljoin(url, location)
    except ValueError:
        place = location
    return printable(without_user(place))[:_SHOWN]
