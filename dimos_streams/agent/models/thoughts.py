"""The thoughts of a model before it answered, as far as its server may want them back with the conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dimos_streams.common.json.reading import repaired
from dimos_streams.common.secrets import redacted_data

KEPT_CHARACTERS = 10_000
"""Maximum length of the thoughts that are kept with an answer, in characters: their end counts most."""
_MAX_DETAILS = 100_000
"""Maximum length of a server's own form of them, in characters of JSON; if it is longer, nothing of it is kept."""
_TEXTS = ("text", "summary", "thinking")
"""The fields of a part of thoughts whose text comes in pieces."""

Details: TypeAlias = Mapping[str, tuple[Mapping[str, Any], ...]]
"""A server's own form of thoughts: parts, by the field of its answer in which they came."""


@dataclass(frozen=True, slots=True)
class Thoughts:
    """The thoughts before one answer."""

    text: str = ""
    details: Details = field(default_factory=dict, hash=False)
    """The server's own form of them, with signatures of what is hidden."""


NO_THOUGHTS = Thoughts()


class GatheredThoughts:
    """Puts the thoughts before one answer together from the pieces in which models stream them."""

    def __init__(self) -> None:
        self._text = ""
        self._details: dict[str, list[dict[str, Any]]] = {}
        self._size = 0
        """The characters of JSON of all details that came."""

    def add(self, text: str) -> None:
        """Take the next piece of text."""
        self._text = (self._text + text)[-KEPT_CHARACTERS:]

    def add_details(self, name: str, parts: Iterable[Mapping[str, Any]]) -> None:
        """Take the next pieces of the server's own form, which came in a field of that name."""
        for part in parts:
            self._size += len(json.dumps(part))
            if self._size > _MAX_DETAILS:
                self._details.clear()
                return
            known = self._details.setdefault(name, [])
            if known and _continues(known[-1], part):
                _join(known[-1], part)
            else:
                known.append(dict(part))

    @property
    def kept(self) -> Thoughts:
        """The thoughts that have come so far, without secrets that were spread over several pieces."""
        details = {name: tuple(redacted_data(repaired(parts))) for name, parts in self._details.items()}
        return Thoughts(self._text, details)


def _continues(newest: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    same = all(newest.get(key) == part.get(key) for key in ("type", "index"))
    signature = newest.get("signature")
    is_over = bool(signature) and signature != part.get("signature") and any(map(part.get, _TEXTS))
    return same and not is_over and any(key in newest for key in _TEXTS)


def _join(newest: dict[str, Any], part: Mapping[str, Any]) -> None:
    for key, value in part.items():
        if key in _TEXTS and isinstance(value, str) and isinstance(newest.get(key), str):
            newest[key] += value
        elif value:
            newest[key] = value
