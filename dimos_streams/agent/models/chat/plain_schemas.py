"""JSON Schemas in the part of the language that Gemini takes, for gateways that hand tools on to it as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEPT = ("description", "minimum", "maximum", "minItems", "maxItems")
"""The keywords that stay as they are."""


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's parameters in that form; an empty one for none, as Gemini takes no object without
    properties for them."""
    plain = plain_schema(parameters)
    return plain if "properties" in plain else {}


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that says no more than Gemini's form can. Whatever it does not say any more, the skill checks.

    ``schema`` has no references.
    """
    merged = _merged(schema)
    alternatives = _alternatives(merged)
    if alternatives and not merged.keys() & {"type", "properties"}:  # Vertex AI takes nothing beside them
        described = {key: merged[key] for key in merged if key == "description"}
        return {"anyOf": [plain_schema({**described, **part}) for part in alternatives]}
    plain = {"type": _type(merged), **{key: merged[key] for key in _KEPT if key in merged}}
    if options := _options(merged):
        plain["enum"] = options
    if properties := _mapping(merged.get("properties")):
        plain["properties"] = {name: plain_schema(_mapping(part)) for name, part in properties.items()}
    if required := [name for name in dict.fromkeys(_list(merged.get("required"))) if name in properties]:
        plain["required"] = required
    if plain["type"] == "array":
        plain["items"] = plain_schema(_mapping(merged.get("items")))
    return plain


def _merged(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with all that holds in any case in one place: what stands in ``allOf``, and an only alternative."""
    merged = {key: value for key, value in schema.items() if key != "allOf"}
    parts = [_mapping(part) for part in _list(schema.get("allOf"))]
    alternatives = _alternatives(merged)
    if len(alternatives) == 1:
        merged = {key: value for key, value in merged.items() if key not in ("anyOf", "oneOf")}
        parts += alternatives
    for part in map(_merged, parts):
        both = part.keys() & merged.keys()
        if "properties" in both:
            merged["properties"] = {**_mapping(part["properties"]), **_mapping(merged["properties"])}
        if "required" in both:
            merged["required"] = [*_list(merged["required"]), *_list(part["required"])]
        merged = {**part, **merged}
    return merged


def _type(merged: Mapping[str, Any]) -> str:
    usual = "object" if "properties" in merged else "array" if "items" in merged else "string"
    kinds = merged.get("type", usual)
    return next((kind for kind in _list(kinds) or [kinds] if kind != "null"), "string")


def _options(merged: Mapping[str, Any]) -> list[str]:
    """The texts of which one has to be given; none if others may be, too, or an empty one, which Gemini refuses."""
    options = (
        [merged["const"]] if "const" in merged else [each for each in _list(merged.get("enum")) if each is not None]
    )
    return options if all(isinstance(option, str) and option for option in options) else []


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives of a schema, without null: what may be null may be left out."""
    given = map(_mapping, _list(schema.get("anyOf") or schema.get("oneOf")))
    return [part for part in given if part and part.get("type") != "null"]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
