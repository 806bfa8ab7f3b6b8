"""The canonical text of arguments, which is one for equal arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dimos_streams.common.printable import printable
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.common.text import plain


def canonical(arguments: Mapping[str, Any]) -> str:
    """JSON that is equal for equal arguments, whatever their order; 1 and 1.0 are equal, 1 and true are not.

    Texts that look the same count as equal, see ``plain``. The JSON is for comparing, and never sent.
    """
    return json.dumps(_plain(arguments), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def shown(skill: str, arguments: Mapping[str, Any], limit: int = 200) -> str:
    """A call as people and models read it, ``move(distance_m=1)``, shortened and in one line."""
    text = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{printable(skill)}({beginning(printable(text), limit)})"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, str):
        return plain(value)
    return value
