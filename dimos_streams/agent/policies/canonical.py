"""The canonical text of arguments, which is one for equal arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dimos_streams.common.json.canonical import canonical_json
from dimos_streams.common.printable import printable
from dimos_streams.common.readable.comparable_text import comparable
from dimos_streams.common.readable.shortening import beginning


def canonical(arguments: Mapping[str, Any]) -> str:
    """Return JSON that is equal for equal arguments, see ``canonical_json``. Texts that look the same count as equal,
    see ``comparable``."""
    return canonical_json(arguments, comparable)


def exactly(arguments: Mapping[str, Any]) -> str:
    """Return JSON that is equal for equal arguments whose texts are the same, sign for sign: what an operator puts in
    the place of a line end, or of what nobody sees, is to be used."""
    return canonical_json(arguments)


def shown(skill: str, arguments: Mapping[str, Any], limit: int = 200) -> str:
    """A call as people and models read it, ``move(distance_m=1)``, shortened and in one line."""
    text = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{printable(skill)}({beginning(printable(text), limit)})"
