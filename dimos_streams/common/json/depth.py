"""The depth of JSON text."""

from __future__ import annotations

import re

_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def without_strings(data: bytes) -> bytes:
    """JSON without its strings: what brackets, commas and colons there are left are those of its values."""
    return _STRINGS.sub(b"", data)


def is_deeper(text: str | bytes, most: int) -> bool:
    """Return whether valid JSON is nested deeper than ``most`` levels. It is not parsed: that would take longer, and
    refuse halves of surrogates, which readers repair."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    depth = 0
    for bracket in without_strings(data).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > most:
            return True
    return False
