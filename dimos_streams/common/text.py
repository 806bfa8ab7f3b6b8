"""Text from outside made whole where it enters: halves of UTF-16 pairs, and JSON that is no more than JSON.

JSON and some operating systems can name one half of a character beyond U+FFFF, a surrogate. Such a text can be
neither encoded nor sent, and one of them in a conversation would be refused by its server for ever.
"""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic_core import from_json, to_json

from dimos_streams.common.readable.unseen import without_unseen

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?P<half>[dD][89a-fA-F][0-9a-fA-F]{2})|[\s\S])"
)
_MOST_MARKS = 30
_GRAPHEME_JOINER = "\u034f"
_LARGEST = sys.float_info.max
_BEHIND_NAMES = ('":', '" ', '"\t', '"\n', '"\r')
_MAX_NAMED = 80


def well_formed(text: str) -> str:
    """The text with the halves of a pair joined, and U+FFFD for a half without its other one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def with_escaped_bytes(text: str) -> str:
    """A path or an argument that is no UTF-8, with those of its bytes escaped that are none, ``\\xff``; empty for one
    that is UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text).decode(errors="backslashreplace")
    return ""


def well_formed_json(text: str) -> str:
    """JSON text of which the same is true of its escapes, ``\\ud83d``; what is no JSON comes out as bad as it was."""
    text = well_formed(text)
    if not _ESCAPED_HALF.search(text):
        return text
    return _ESCAPE.sub(lambda match: r"\ufffd" if match["half"] else match[0], text)


def repaired(value: Any) -> Any:
    """JSON data with well-formed text, keys included, and None for numbers that ``is_finite`` says no to."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, int | float):
        return value if -_LARGEST <= value <= _LARGEST else None
    if isinstance(value, Mapping):
        return {well_formed(key) if isinstance(key, str) else key: repaired(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [repaired(part) for part in value]
    return value


def parse_json(data: str | bytes) -> Any:
    """The value of a JSON text, its strings well-formed. Raises ``ValueError`` for all that is not JSON.

    That includes NaN, Infinity, numbers that only infinity could stand for (``1e999``), and bytes that are not UTF-8.
    """
    value = from_json(_well_formed(data), allow_inf_nan=False)
    _names_in(value)
    return value


def parse_command(data: str | bytes) -> Any:
    """The value of a JSON text that asks for something. Raises ``ValueError`` as ``parse_json`` does, and for objects
    with several members of one name: who looked at the text before, to allow it, may have seen another one."""
    text = _well_formed(data)
    value = from_json(text, allow_inf_nan=False)
    names = _names_in(value)
    # Most texts are not read twice: they have no more of what stands behind names than names.
    if names < text.count(":") and names < sum(map(text.count, _BEHIND_NAMES)):
        json.loads(text, object_pairs_hook=_refuse_doubles)
    return value


def _well_formed(data: str | bytes) -> str:
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")
    # Halves are no ASCII, unless they are escaped.
    return text if text.isascii() and "\\" not in text else well_formed_json(text)


def _refuse_doubles(members: list[tuple[str, Any]]) -> None:
    if len(dict(members)) < len(members):
        double = Counter(name for name, _ in members).most_common(1)[0][0]
        raise ValueError(f"an object has several members of the name {double[:_MAX_NAMED]!r}")


def plain(text: str) -> str:
    """The form of a text for comparing: accents in one form (NFC), no characters that nobody sees (soft hyphens,
    zero-width spaces, variation selectors, control characters), and single blanks between words only."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join(normalized("NFC", without_unseen(text)).split())


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """The text in a normal form, in a time that grows as the text does: a run of combining marks is sorted at once,
    in the square of its length, and is cut by a joiner that nobody sees (the stream-safe format of UAX #15)."""
    return unicodedata.normalize(form, text if text.isascii() else "".join(_stream_safe(text)))


def _stream_safe(text: str) -> Iterator[str]:
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > _MOST_MARKS:
            yield _GRAPHEME_JOINER
            marks = 1
        yield character


def cut_to(text: str, most_bytes: int) -> str:
    """Return the text if its JSON has at most so many bytes, else its beginning, with a note of how much is
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


class TextJoiner:
    """Makes text that comes in pieces well-formed; the halves of a pair may come in different pieces."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """The text of the next piece, but for a half at its end, which waits for the other one."""
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return well_formed(piece)

    def rest(self) -> str:
        """The text that still waited at the end."""
        rest, self._half = self._half, ""
        return well_formed(rest)


def is_finite(value: Any) -> bool:
    """Return whether all numbers of a JSON value are finite: no infinity, no NaN, and no whole number that is larger
    than any float. Other programs take such a number for infinity, and arithmetic with it fails here."""
    try:
        _names_in(value)
    except ValueError:
        return False
    return True


def _names_in(value: Any) -> int:
    """Return the number of names in all objects of a JSON value, in one walk with the search for a number that is not
    finite, because every event is looked at. Raises ``ValueError`` for such a number."""
    names, parts = (len(value), value.values()) if isinstance(value, dict) else (0, value)
    if not isinstance(value, dict | list):
        parts = (value,)
    for part in parts:
        if type(part) is str:  # most are
            continue
        if isinstance(part, int | float):
            if not -_LARGEST <= part <= _LARGEST:
                raise ValueError("a number is too large")
        elif isinstance(part, dict | list) and part:
            names += _names_in(part)
    return names
