"""Nested data, as JSON has it: with one value replaced, with sets in order, as a text that is one for equal data, and
how deep it is nested."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dimos_streams.errors import UserError

_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def with_value(data: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return the data with another value at ``path``. Raises ``UserError`` for an item that is not in its list."""
    first, *rest = path
    if rest:
        inner = data.get(first)
        if isinstance(inner, list | tuple):
            value = _with_item(inner, rest, value, first)
        else:
            value = with_value(inner if isinstance(inner, Mapping) else {}, rest, value)
    return {**data, first: value}


def with_sorted_sets(data: Any, origin: Any) -> Any:
    """Return data in which lists that were made of sets are sorted, so that equal sets are equal lists; ``origin`` is
    what the data were made of."""
    if isinstance(data, dict) and isinstance(origin, dict) and len(data) == len(origin):
        return {key: with_sorted_sets(data[key], part) for key, part in zip(data, origin.values(), strict=True)}
    if isinstance(data, list) and isinstance(origin, set | frozenset):
        return sorted(data, key=canonical_json)
    if isinstance(data, list) and isinstance(origin, list | tuple) and len(data) == len(origin):
        return [with_sorted_sets(item, part) for item, part in zip(data, origin, strict=True)]
    return data


def canonical_json(value: Any, text: Callable[[str], str] = str) -> str:
    """Return JSON that is equal for equal values, whatever the order of their fields; 1 and 1.0 are equal, 1 and true
    are not.

    Texts count as what ``text`` makes of them. The JSON is for comparing, and never sent.
    """
    return json.dumps(_plain(value, text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _with_item(items: Sequence[Any], path: Sequence[str], value: Any, name: str) -> list[Any]:
    """Return the list with one item changed, or added behind the last. Raises ``UserError`` for any other item."""
    index, *rest = path
    if not index.isdecimal() or int(index) > len(items):
        valid = f"0 to {len(items) - 1} are there, {len(items)} adds one" if items else "0 adds the first"
        raise UserError(f"{name!r} has no item {index!r}: {valid}")
    at = int(index)
    if rest:
        inner = items[at] if at < len(items) else {}
        if isinstance(inner, list | tuple):
            value = _with_item(inner, rest, value, f"{name}.{index}")
        else:
            value = with_value(inner if isinstance(inner, Mapping) else {}, rest, value)
    return [*items[:at], value, *items[at + 1 :]]


def _plain(value: Any, text: Callable[[str], str]) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(part, text) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, text) for part in value]
    if isinstance(value, str):
        return text(value)
    return value


def is_deeper(text: str | bytes, most: int) -> bool:
    """Return whether valid JSON is nested deeper than ``most`` levels. It is not parsed: that would take longer, and
    refuse halves of surrogates, which readers repair."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    depth = 0
    for bracket in _STRINGS.sub(b"", data).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > most:
            return True
    return False
