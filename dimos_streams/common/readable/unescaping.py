"""Texts without the escapes of URLs, HTML and JSON, whichever of their characters are escaped, and where each was."""

from __future__ import annotations

import functools
import html
import re
from bisect import bisect_right

_MARKS = ("%", "&", "\\u", "\\x")
_ESCAPE = re.compile(
    r"%[0-7][0-9a-f]|&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|amp|lt|gt|quot|apos);|\\{1,4}(?:u[0-9a-f]{4}|x[0-9a-f]{2})", re.I
)


def unescaped(text: str) -> str | None:
    """Return a text with its escapes replaced by what they stand for, or None if it has none. What is escaped twice
    still is once."""
    if not any(mark in text for mark in _MARKS):  # which takes no time, and most texts have none
        return None
    plain, count = _ESCAPE.subn(_character_of, text)
    return plain if count else None


class Origins:
    """The places in a text of what stands in it unescaped."""

    def __init__(self, text: str) -> None:
        at = length = 0
        self._places, self._origins = [0], [0]
        """Where what stands literally, and each character that was escaped, begins unescaped, and where in the
        text."""
        for escape in _ESCAPE.finditer(text):
            begin, end = escape.span()
            length += begin - at
            self._places += [length, length + 1]
            self._origins += [begin, end]
            at, length = end, length + 1

    def __getitem__(self, place: int) -> int:
        index = bisect_right(self._places, place) - 1
        return self._origins[index] + place - self._places[index]


def _character_of(escape: re.Match[str]) -> str:
    return _character(escape[0])


@functools.lru_cache(maxsize=1000)
def _character(escape: str) -> str:
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    if escape[0] == "\\":
        return chr(int(escape.lstrip("\\")[1:], 16))
    return html.unescape(escape)[:1] or " "
