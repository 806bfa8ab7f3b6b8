"""Texts brought into one form, so that those that look the same are equal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Literal

from dimos_streams.common.readable.unseen import without_unseen

_MOST_MARKS = 30
_GRAPHEME_JOINER = "\u034f"


def comparable(text: str) -> str:
    """Return a text with accents in one form (NFC), without characters that nobody sees (soft hyphens, zero-width
    spaces, variation selectors, control characters), and with single blanks between words only."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join(normalized("NFC", without_unseen(text)).split())


def in_small_letters(text: str) -> str:
    """Return a text in small letters, with i and s for those of other keyboards (a dotted capital I, a dotless small
    one, a long s), as patterns that ignore case take them."""
    return text.replace("\u0130", "I").upper().casefold()


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return the text in a normal form, in a time that grows as the text does: a run of combining marks is sorted at
    once, in the square of its length, and is cut by a joiner that nobody sees (the stream-safe format of UAX #15)."""
    return unicodedata.normalize(form, text if text.isascii() else "".join(_stream_safe(text)))


def _stream_safe(text: str) -> Iterator[str]:
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > _MOST_MARKS:
            yield _GRAPHEME_JOINER
            marks = 1
        yield character
