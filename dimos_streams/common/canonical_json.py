"""JSON for comparing: one text for equal values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any


def canonical_json(value: Any, text: Callable[[str], str] = str) -> str:
    """Return JSON that is equal for equal values, whatever the order of their fields; 1 and 1.0 are equal, 1 and true
    are not.

    Texts count as what ``text`` makes of them. The JSON is for comparing, and never sent.
    """
    return json.dumps(_plain(value, text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


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
