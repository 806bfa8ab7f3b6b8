"""``then``: the skill that a lookout goes on with, and the names that stand for what was seen."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dimos_streams.errors import SkillError, suggest

_NAME = re.compile(r"\$([A-Za-z_]\w*)")


class Then(BaseModel):
    """A skill to go on with. In texts of its arguments $label, $description and $bbox stand for what was seen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    skill: str = Field(description="Name of the skill.")
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        description="Its arguments. $label: what was seen; $description: which description it matches; "
        "$bbox: where in the picture, [left, top, right, bottom] in pixels.",
    )

    def arguments_with(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with each ``$name`` replaced. A text that is nothing but a name becomes the value itself.

        Raises ``SkillError`` for a name that ``values`` does not have.
        """
        return {key: _replaced(value, values) for key, value in self.arguments.items()}


def _replaced(node: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(node, dict):
        return {key: _replaced(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_replaced(item, values) for item in node]
    if not isinstance(node, str):
        return node
    if whole := _NAME.fullmatch(node):
        return _value(whole[1], values)
    return _NAME.sub(lambda found: _text(_value(found[1], values)), node)


def _value(name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        valid = ", ".join(f"${known}" for known in values)
        raise SkillError(f"`then` has no value for '${name}'{suggest(name, values)} (valid: {valid})")
    return values[name]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
