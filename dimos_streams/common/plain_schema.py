"""JSON Schemas of pydantic models as language models and people read them."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


@functools.cache
def plain_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model's object, without titles that repeat the names of its fields. Not to be changed."""
    schema = _without_titles(model.model_json_schema())
    schema.setdefault("properties", {})
    # Through JSON, so that every process sees the same plain types.
    plain: dict[str, Any] = json.loads(json.dumps(schema))
    return plain


def _without_titles(node: Any, *, naming: bool = False) -> Any:
    """Pydantic's titles repeat the names; models read schemas better without them."""
    if isinstance(node, dict):
        return {
            key: _without_titles(value, naming=key in ("properties", "$defs") and not naming)
            for key, value in node.items()
            if naming or key != "title" or not isinstance(value, str)
        }
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    return node
