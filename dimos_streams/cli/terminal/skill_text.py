"""Skills as people read them: what they move, and the schemas of their arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dimos_streams.common.readable.listed import listed

if TYPE_CHECKING:
    from dimos_streams.skill.policy import SkillTraits


def moving(skill: SkillTraits) -> str:
    """Say whether a call of a skill moves the robot, or may for what it holds."""
    if skill.moves:
        return "yes"
    return f"may (holds {listed(skill.resources)})" if skill.may_move else "no"


def signature(schema: Mapping[str, Any]) -> str:
    """``"description: string, timeout_s: number = 120.0"`` for the JSON Schema of a skill's arguments."""
    properties = schema.get("properties", {})
    return ", ".join(_parameter(name, part) for name, part in properties.items())


def _parameter(name: str, part: Mapping[str, Any]) -> str:
    default = f" = {json.dumps(part['default'], ensure_ascii=False)}" if "default" in part else ""
    return f"{name}: {_type(part)}{default}"


def _type(part: Mapping[str, Any]) -> str:
    if "enum" in part:  # of a class, too: its values are what one gives
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in part["enum"])
    if "title" in part:
        return str(part["title"])
    if "$ref" in part:  # of a module in another language, say
        return str(part["$ref"]).rpartition("/")[2]
    if "const" in part:
        return json.dumps(part["const"])
    if "anyOf" in part:
        return " | ".join(_type(option) for option in part["anyOf"])
    if part.get("type") == "array":
        return f"array of {_type(part.get('items', {}))}"
    return str(part.get("type", "any"))
