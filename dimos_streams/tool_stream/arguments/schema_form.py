"""The form of a schema by JSON Schema 2020-12, as far as another version's would make every check of a value fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dimos_streams.common.schemas.references import NAMING

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_NAMED = NAMING | {"$defs", "definitions"}
_WITHIN = frozenset(
    {
        *("items", "prefixItems", "additionalProperties", "contains", "propertyNames"),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
    }
)
_BOUNDS = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    }
)
_MAX_SHOWN = 50


def check_form(schema: dict[str, Any]) -> None:
    """Raise ``ValueError`` for a schema with a part that is none in JSON Schema 2020-12. What it does not know is
    left to the check of a value."""
    left: list[object] = [schema]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if why := _fault(part):
                raise ValueError(f"it is not valid in JSON Schema 2020-12 ({why})")
            left += _parts(part)


def _parts(schema: dict[str, Any]) -> Iterator[object]:
    for key, value in schema.items():
        if key in _WITHIN:
            yield from value if isinstance(value, list) else (value,)
        elif key in _NAMED and isinstance(value, dict):
            yield from value.values()


def _fault(schema: dict[str, Any]) -> str:
    """Return what is wrong with a schema besides its parts; empty if nothing is."""
    if isinstance(schema.get("items"), list):
        return "`items` is a list, which is called `prefixItems` there"
    types = schema.get("type", "object")
    for name in types if types and isinstance(types, list) else [types]:
        if name not in _TYPES:
            return f"`type` is {repr(name)[:_MAX_SHOWN]}; valid: {', '.join(_TYPES)}"
    for name, value in schema.items():
        if name in _BOUNDS and (isinstance(value, bool) or not isinstance(value, int | float)):
            return f"`{name}` is {repr(value)[:_MAX_SHOWN]}, and must be a number"
    if not isinstance(schema.get("required", []), list):
        return f"`required` is {repr(schema['required'])[:_MAX_SHOWN]}, and must be a list of names"
    return ""
