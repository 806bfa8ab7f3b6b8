"""JSON data with one of its values replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.errors import UserError


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
