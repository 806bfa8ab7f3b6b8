"""One JSON text for all values that are equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from dimos_streams.common.json.reading import parse_json


def canonical_json(value: Any, text: Callable[[str], str] = str) -> str:
    """Return JSON that is equal for equal values, whatever the order of their fields; 1 and 1.0 are equal, 1 and true
    are not.

    Texts count as what ``text`` makes of them. The JSON is for comparing, and never sent.
    """
    return json.dumps(_plain(value, text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def is_same_json(one: str, other: str) -> bool:
    """Return whether two JSON texts are of equal values, see ``canonical_json``."""
    return one == other or canonical_json(parse_json(one)) == canonical_json(parse_json(other))


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
