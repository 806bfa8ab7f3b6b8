"""The search for secrets in texts, in all forms in which they may be there."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from dimos_streams.common.readable.unescaping import Origins, unescaped

REDACTED = "[redacted]"
SHORTEST = 6
"""Minimum length of a secret, in characters: shorter ones are in too many harmless words to be looked for."""

_MOST_ESCAPED = 2
"""Maximum number of times that a secret may be escaped and is found all the same."""
_Span = tuple[int, int]


class Redaction:
    """Secrets, and all forms in which they are looked for: as they are, escaped as in JSON, Python, URLs and HTML,
    and in the middle of anything in base64. In a whole text any of their characters may be escaped, and escapes
    themselves twice."""

    def __init__(self) -> None:
        self._forms: frozenset[str] = frozenset()
        self._beginnings: set[str] = set()
        self._longest = 0

    def add(self, secret: str) -> bool:
        """Look for a secret from now on; return False if it is too short for that."""
        if len(secret) < SHORTEST:
            return False
        if secret not in self._forms:
            new = {form for form in _forms(secret) if len(form) >= SHORTEST}
            self._beginnings.update(form[:end] for form in new for end in range(1, len(form)))
            self._longest = max(self._longest, *map(len, new))
            self._forms |= new
        return True

    def has(self, text: str) -> bool:
        """Return whether a whole text is a secret."""
        return text in self._forms

    def spans(self, text: str, also: Iterable[_Span] = ()) -> list[_Span]:
        """The spans of secrets in a text, in order; those that overlap are one. ``also`` are further such spans."""
        if not self._forms and not also:  # events ask for each of their texts
            return []
        found = sorted([*also, *self._places(text)])
        merged: list[_Span] = []
        for begin, end in found:
            if merged and begin < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return merged

    def _places(self, text: str, escaped: int = _MOST_ESCAPED) -> Iterator[_Span]:
        """Yield the spans of all forms in a text, also where they are escaped up to ``escaped`` times."""
        for form in self._forms:
            yield from _places(form, text)
        plain = unescaped(text) if escaped else None
        spans = [] if plain is None else list(self._places(plain, escaped - 1))
        if spans:
            origins = Origins(text)
            yield from ((origins[begin], origins[end]) for begin, end in spans)

    def redacted(self, text: str) -> str:
        """The text without secrets."""
        spans = self.spans(text)
        if not spans:
            return text
        kept, at = [], 0
        for begin, end in spans:
            kept += [text[at:begin], REDACTED]
            at = end
        return "".join([*kept, text[at:]])

    def begun(self, text: str) -> int:
        """The number of characters at the end of a text that may be the beginning of a secret."""
        for length in range(min(len(text), self._longest - 1), 0, -1):
            if text[-length:] in self._beginnings:
                return length
        return 0


def _places(form: str, text: str) -> Iterator[_Span]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + 1)


def _forms(secret: str) -> set[str]:
    in_json = json.dumps(secret)[1:-1]
    texts = {secret, in_json, json.dumps(in_json)[1:-1], in_json.replace("/", "\\/")}
    texts |= {repr(secret)[1:-1], repr(f"'{secret}")[2:-1], html.escape(secret), html.escape(secret, quote=False)}
    encoded = _bytes_of(secret)
    for in_url in (quote(encoded, safe=""), quote(encoded), quote_plus(encoded)):
        texts |= {in_url, re.sub("%..", lambda match: match[0].lower(), in_url)}
    return texts | set(_in_base64(encoded))


def _bytes_of(secret: str) -> bytes:
    """The bytes that a secret stands for: those of the environment may be no UTF-8."""
    try:
        return secret.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character, which only JSON can name
        return secret.encode("utf-8", "surrogatepass")


def _in_base64(secret: bytes) -> Iterator[str]:
    """The part that every base64 text contains that stands for something with the secret in its middle."""
    for before in range(3):
        first, last = -(-8 * before // 6), 8 * (before + len(secret)) // 6
        core = base64.b64encode(bytes(before) + secret).decode()[first:last]
        yield core
        yield core.replace("+", "-").replace("/", "_")
