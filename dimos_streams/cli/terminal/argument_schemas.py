"""The schemas of a skill's arguments as the command line reads them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from dimos_streams.common.schemas.references import inlined

_KINDS: Mapping[str, type] = {
    "properties": dict,
    **dict.fromkeys(("required", "enum", "anyOf", "oneOf", "prefixItems"), list),
}
"""What the values of keywords must be for them to say anything."""


def arguments_of(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schema of each argument, or of each part of one that is an object, with what its references stand
    for in their places, if they stand for anything."""
    with contextlib.suppress(ValueError):
        schema = inlined(schema)
    return {name: part_of(part) for name, part in part_of(schema).get("properties", {}).items()}


def part_of(schema: object) -> Mapping[str, Any]:
    """Return a schema without the keywords that nobody could understand; an empty one for what says nothing of a
    value, such as ``true``."""
    if not isinstance(schema, Mapping):
        return {}
    return {word: value for word, value in schema.items() if isinstance(value, _KINDS.get(word, object))}


def options_of(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas of which a value fits one; none if there is only one that it has to fit."""
    return [part_of(option) for option in part.get("anyOf", part.get("oneOf", ()))]
