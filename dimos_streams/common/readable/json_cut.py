"""Texts cut so that their JSON stays within a number of bytes."""

from __future__ import annotations

from pydantic_core import to_json


def cut_to(text: str, most_bytes: int) -> str:
    """Return the text if its JSON has at most ``most_bytes``, else its beginning, with a note of how much is
    missing."""
    if _json_bytes(text) <= most_bytes:
        return text
    fewest, most = 0, len(text)
    while fewest < most:
        middle = (fewest + most + 1) // 2
        if _json_bytes(_cut(text, middle)) <= most_bytes:
            fewest = middle
        else:
            most = middle - 1
    return _cut(text, fewest)


def _cut(text: str, characters: int) -> str:
    return f"{text[:characters]} [{len(text) - characters} of {len(text)} characters are left out here]"


def _json_bytes(text: str) -> int:
    return len(to_json(text))
