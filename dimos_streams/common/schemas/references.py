"""JSON Schemas with each ``$ref`` put in: model servers and clients of MCP do not all understand references."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

MAX_PARTS = 20_000
"""The largest number of parts of a schema after each ``$ref`` is replaced by what it refers to."""
FOREIGN_PARTS = 500
"""The largest number of parts that references may stand for in one schema that comes from outside and is passed on,
because somebody may send many."""
_MAX_DEPTH = 64
NAMING = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords whose keys are names and whose values are schemas."""
_DATA = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose values are no schemas, whatever they look like."""
_LEFT_OUT = frozenset({"$ref", "$defs", "definitions", "discriminator"})
"""References and what they refer to; a discriminator maps names to references."""
_REMARKS = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
"""Keywords that say something of a value and ask nothing of it."""


def resolved(root: Mapping[str, Any], reference: str) -> object:
    """The part of a schema that a ``$ref`` in it refers to. Raises ``ValueError`` if that is nothing of it."""
    if not reference.startswith("#/"):
        raise ValueError(f"its $ref {reference[:100]!r} is not local: it must begin with '#/'")
    found: object = root
    for part in urllib.parse.unquote(reference[2:]).split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            raise ValueError(f"its $ref {reference[:100]!r} leads nowhere")
        found = found[name]
    return found


def subschemas(schema: object) -> Iterator[object]:
    """Yield what may be schemas directly within a schema, or within a list of them."""
    if isinstance(schema, list):
        yield from schema
    elif isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in NAMING and isinstance(value, Mapping):
                yield from value.values()
            elif key not in _DATA:
                yield value


def inlined(schema: Mapping[str, Any], most_parts: int = MAX_PARTS) -> dict[str, Any]:
    """Return the same schema without any ``$ref``. What it says besides a reference goes before what that refers to.

    Raises ``ValueError`` for a type that contains itself, which it names, for references that lead nowhere, and for
    references that stand for more than ``most_parts`` parts: with types within types that grows with every level.
    """
    found: dict[str, Any] = _Inlining(schema, most_parts).schema(schema, 0)
    return found


class _Inlining:
    def __init__(self, root: Mapping[str, Any], most_parts: int) -> None:
        self._root = root
        self._most = most_parts
        self._parts = 0
        self._under_way: list[str] = []

    def schema(self, node: Any, depth: int) -> Any:
        self._parts += bool(self._under_way)
        if self._parts > self._most:
            raise ValueError(f"with each type written out it has more than {self._most} parts more")
        if depth > _MAX_DEPTH:
            raise ValueError(f"it is nested more than {_MAX_DEPTH} deep")
        if isinstance(node, list):
            return [self.schema(item, depth + 1) for item in node]
        if not isinstance(node, Mapping):
            return node
        own = {key: self._value(key, value, depth) for key, value in node.items() if key not in _LEFT_OUT}
        reference = node.get("$ref")
        return _joined(self._referred(reference, depth), own) if isinstance(reference, str) else own

    def _value(self, key: str, value: Any, depth: int) -> Any:
        if key in _DATA:
            return value
        if key in NAMING and isinstance(value, Mapping):
            return {name: self.schema(part, depth + 1) for name, part in value.items()}
        return self.schema(value, depth + 1)

    def _referred(self, reference: str, depth: int) -> Any:
        if reference in self._under_way:
            raise ValueError(f"type {reference.rpartition('/')[2]!r} contains itself")
        self._under_way.append(reference)
        found = self.schema(resolved(self._root, reference), depth + 1)
        self._under_way.pop()
        return found


def _joined(referred: Any, own: dict[str, Any]) -> Any:
    """Return the schema that a reference stands for, with what is said besides it."""
    if not own:
        return referred
    remarks = {key: value for key, value in own.items() if key in _REMARKS}
    if isinstance(referred, dict) and len(remarks) == len(own):
        return {**referred, **remarks}
    demands = {key: value for key, value in own.items() if key not in _REMARKS}
    return {"allOf": [referred, *([demands] if demands else [])], **remarks}
