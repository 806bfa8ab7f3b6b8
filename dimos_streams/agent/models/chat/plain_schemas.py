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
    told = _merged(schema)
    alternatives = _alternatives(told)
    if alternatives and not told.keys() & {"type", "properties"}:  # Vertex AI takes nothing beside them
        described = {key: told[key] for key in told if key == "description"}
        return {"anyOf": [plain_schema({**described, **part}) for part in alternatives]}
    plain = {"type": _type(told), **{key: told[key] for key in _KEPT if key in told}}
    if options := _options(told):
        plain["enum"] = options
    if properties := _mapping(told.get("properties")):
        plain["properties"] = {name: plain_schema(_mapping(part)) for name, part in properties.items()}
    if required := [name for name in dict.fromkeys(_list(told.get("required"))) if name in properties]:
        plain["required"] = required
    if plain["type"] == "array":
        plain["items"] = plain_schema(_mapping(told.get("items")))
    return plain


def _merged(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with all that holds in any case in one place: what stands in ``allOf``, and an only alternative."""
    told = {key: value for key, value in schema.items() if key != "allOf"}
    parts = [_mapping(part) for part in _list(schema.get("allOf"))]
    alternatives = _alternatives(told)
    if len(alternatives) == 1:
        told = {key: value for key, value in told.items() if key not in ("anyOf", "oneOf")}
        parts += alternatives
    for part in map(_merged, parts):
        both = part.keys() & told.keys()
        if "properties" in both:
            told["properties"] = {**_mapping(part["properties"]), **_mapping(told["properties"])}
        if "required" in both:
            told["required"] = [*_list(told["required"]), *_list(part["required"])]
        told = {**part, **told}
    return told


def _type(told: Mapping[str, Any]) -> str:
    usual = "object" if "properties" in told else "array" if "items" in told else "string"
    kinds = told.get("type", usual)
    return next((kind for kind in _list(kinds) or [kinds] if kind != "null"), "string")


def _options(told: Mapping[str, Any]) -> list[str]:
    """The texts of which one has to be given; none if others may be, too, or an empty one, which Gemini refuses."""
    options = [told["const"]] if "const" in told else [each for each in _list(told.get("enum")) if each is not None]
    return options if all(isinstance(option, str) and option for option in options) else []


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives of a schema, without null: what may be null may be left out."""
    given = map(_mapping, _list(schema.get("anyOf") or schema.get("oneOf")))
    return [part for part in given if part and part.get("type") != "null"]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
