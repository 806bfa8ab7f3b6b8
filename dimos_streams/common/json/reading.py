"""JSON text from outside, made whole where it enters: it is no more than JSON, and its strings are well-formed."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from dimos_streams.common.json.parts import check_parts
from dimos_streams.common.readable.surrogates import well_formed

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?P<half>[dD][89a-fA-F][0-9a-fA-F]{2})|[\s\S])"
)
_LARGEST = sys.float_info.max
_BEHIND_NAMES = ('":', '" ', '"\t', '"\n', '"\r')
_MAX_NAMED = 80


def well_formed_json(text: str) -> str:
    """Return JSON text whose strings are well-formed: halves of UTF-16 pairs, also escaped ones (``\\ud83d``), are
    joined or replaced. A text that is no JSON does not become any."""
    text = well_formed(text)
    if not _ESCAPED_HALF.search(text):
        return text
    return _ESCAPE.sub(lambda match: r"\ufffd" if match["half"] else match[0], text)


def repaired(value: Any) -> Any:
    """Return JSON data with well-formed text, keys included, and None in place of infinity, NaN and numbers that no
    float can hold."""
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
    """Return the value of a JSON text, its strings well-formed. Raises ``ValueError`` for all that is not JSON.

    That includes NaN, Infinity, numbers that only infinity could stand for (``1e999``), and bytes that are not UTF-8.
    """
    value = from_json(_well_formed(data), allow_inf_nan=False)
    _names_in(value)
    return value


def parse_command(data: str | bytes) -> Any:
    """Return the value of a JSON text that asks for something. Raises ``ValueError`` as ``parse_json`` does, and for
    objects with several members of one name: who looked at the text before, to allow it, may have seen another."""
    text = _well_formed(data)
    value = from_json(text, allow_inf_nan=False)
    names = _names_in(value)
    # Most texts are not read twice: they have no more of what stands behind names than names.
    if names < text.count(":") and names < sum(map(text.count, _BEHIND_NAMES)):
        json.loads(text, object_pairs_hook=_refuse_doubles)
    return value


def parse_client_json(data: str | bytes) -> Any:
    """Return the value of a JSON text in which a client asks for something. Raises ``ValueError`` as
    ``parse_command`` does, and, before it is parsed, for one of more parts than anything that can be asked for."""
    check_parts(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    return parse_command(data)


def _well_formed(data: str | bytes) -> str:
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")
    # Halves are no ASCII, unless they are escaped.
    return text if text.isascii() and "\\" not in text else well_formed_json(text)


def _refuse_doubles(members: list[tuple[str, Any]]) -> None:
    if len(dict(members)) < len(members):
        double = Counter(name for name, _ in members).most_common(1)[0][0]
        raise ValueError(f"an object has several members of the name {double[:_MAX_NAMED]!r}")


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
