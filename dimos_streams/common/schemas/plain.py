"""JSON Schemas of pydantic models as language models, clients and people read them."""

from __future__ import annotations

import functools
import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from dimos_streams.common.schemas.references import inlined


class _WithoutOddDefaults(GenerateJsonSchema):
    """Leaves out a default that JSON does not have, without a warning: the parameter is optional all the same."""

    ignored_warning_kinds = {*GenerateJsonSchema.ignored_warning_kinds, "non-serializable-default"}  # noqa: RUF012


@functools.lru_cache(maxsize=1024)
def plain_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model's object, each type in its place, without titles that repeat the names of fields.

    Not to be changed. Raises ``ValueError`` for a type that contains itself, and for a schema that becomes too large.
    """
    schema = inlined(_without_titles(model.model_json_schema(schema_generator=_WithoutOddDefaults)))
    schema.setdefault("properties", {})
    # Through JSON, so that every process sees the same plain types.
    plain: dict[str, Any] = json.loads(json.dumps(schema))
    return plain


def tool_parameters(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a tool's arguments, as ``plain_schema`` returns it, without the model's description: the tool has
    its own."""
    return {key: value for key, value in plain_schema(model).items() if key != "description"}


def _without_titles(node: Any, *, naming: str = "") -> Any:
    """Pydantic's titles of fields repeat their names; models read schemas better without them. Titles of types stay.

    ``naming`` is the keyword whose names and schemas a node consists of.
    """
    if isinstance(node, dict):
        return {
            key: _titled(value) if naming == "$defs" else _without_titles(value, naming=_naming(key, naming))
            for key, value in node.items()
            if naming or key != "title" or not isinstance(value, str)
        }
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    return node


def _naming(key: str, naming: str) -> str:
    return key if key in ("properties", "$defs") and not naming else ""


def _titled(definition: Any) -> Any:
    title = definition.get("title") if isinstance(definition, dict) else None
    plain = _without_titles(definition)
    return {"title": title, **plain} if title is not None else plain
