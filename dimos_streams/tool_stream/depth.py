"""The depth to which data may be nested: whoever hands an event on puts a few levels around its data, and readers of
JSON refuse what has more than 200."""

from __future__ import annotations

from typing import Final

from pydantic_core import from_json

MAX_DEPTH: Final = 100
"""Maximum depth of an event's data; an object or a list is a level."""
MAX_ARGUMENTS_DEPTH: Final = 64
"""Maximum depth of a call's arguments, which are within the data of its ``open``, and within the arguments of its
review."""


def is_deeper(text: str | bytes, most: int) -> bool:
    """Return whether JSON is nested deeper than ``most`` levels. A text with no more brackets than that is not
    parsed."""
    if _brackets(text) <= most:
        return False
    try:
        level = [from_json(text)]
    except ValueError:  # deeper than anybody reads
        return True
    for _ in range(most + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return False
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
    return True


def _brackets(text: str | bytes) -> int:
    return text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
