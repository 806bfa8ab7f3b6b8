"""Arguments that a JSON Schema describes: those of skills that others define, and that have no Python signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams.common.schemas.references import FOREIGN_PARTS, inlined
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.arguments.schemas import check_arguments, check_schema


class SchemaParameters:
    """``Parameters`` of a skill by a schema from outside. Arguments that it does not name are refused, whatever it
    says of them, because nobody has described or checked them."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raise ``ValueError`` for a schema that is not one of an object, refers to others or itself, or is too
        large."""
        check_schema(dict(schema))
        named = {"properties": {}, **inlined(schema, FOREIGN_PARTS), "type": "object", "additionalProperties": False}
        self._info = SkillInfo(name="", description="", parameters=named)

    @property
    def names(self) -> frozenset[str]:
        """The names of the arguments."""
        return frozenset(self._info.parameters["properties"])

    def schema(self) -> dict[str, Any]:
        """See ``Parameters``."""
        return self._info.parameters

    def validate(self, skill: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See ``Parameters``. They come out as they went in."""
        check_arguments(self._info.model_copy(update={"name": skill}), arguments)
        return dict(arguments)
