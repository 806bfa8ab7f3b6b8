"""Answers of HTTP servers that are not read at all: packed ones, which may unpack to any size, and redirections."""

from __future__ import annotations

from collections.abc import Mapping

PLAIN = {"Accept-Encoding": "identity"}
"""The header of a request whose answer may not be packed."""


def why_unread(headers: Mapping[str, str]) -> str | None:
    """The reason why an answer is not read, as what is said of its server, or None if it is."""
    encoding = headers.get("Content-Encoding", "").strip()
    if encoding.lower() not in ("", "identity"):
        return f"answers with the encoding {encoding[:100]!r}, for which nobody asked; nothing of it was read"
    return None
