"""The schemas of a skill's arguments as the command line reads them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from dimos_streams.common.schemas.references import inlined


def arguments_of(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schema of each argument, or of each part of one that is an object, with what its references stand
    for in their places, if they stand for anything."""
    with contextlib.suppress(ValueError):
        schema = inlined(schema)
    return {name: part_of(part) for name, part in schema.get("properties", {}).items()}


def part_of(schema: object) -> Mapping[str, Any]:
    """Return a schema within another one; an empty one for what says nothing of a value, such as ``true``."""
    return schema if isinstance(schema, Mapping) else {}
