"""JSON Schemas in the part of the language that Gemini takes, for gateways that hand tools on to it as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEPT = ("type", "description", "enum", "required", "minimum", "maximum", "minItems", "maxItems")
"""The keywords that stay as they are."""


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that says no more than Gemini's form can. Whatever it does not say any more, the skill checks.

    ``schema`` has no references.
    """
    told = _one_alternative(schema)
    plain = {key: told[key] for key in _KEPT if key in told}
    if isinstance(kinds := plain.get("type"), list):
        plain["type"] = next((kind for kind in kinds if kind != "null"), "string")
    if "const" in told:
        plain["enum"] = [told["const"]]
    if not all(isinstance(value, str) for value in plain.get("enum", ())):
        del plain["enum"]
    if alternatives := _alternatives(told):
        plain["anyOf"] = [plain_schema(part) for part in alternatives]
    if isinstance(told.get("properties"), Mapping):
        plain["properties"] = {name: _plain_part(part) for name, part in told["properties"].items()}
    if "items" in told or plain.get("type") == "array":
        plain["items"] = _plain_part(told.get("items"))
    return plain if "type" in plain or "anyOf" in plain else {"type": "string", **plain}


def _plain_part(part: Any) -> dict[str, Any]:
    return plain_schema(part if isinstance(part, Mapping) else {})


def _one_alternative(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with all that holds in any case in one place: what stands in ``allOf``, and an only alternative."""
    for part in schema.get("allOf", ()):
        schema = {**part, **schema} if isinstance(part, Mapping) else schema
    alternatives = _alternatives(schema)
    if len(alternatives) != 1:
        return schema
    told = {key: value for key, value in schema.items() if key not in ("allOf", "anyOf", "oneOf")}
    return _one_alternative({**alternatives[0], **told})


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives of a schema, without null: what may be null may be left out."""
    given = schema.get("anyOf") or schema.get("oneOf") or ()
    return [part for part in given if isinstance(part, Mapping) and part.get("type") != "null"]
