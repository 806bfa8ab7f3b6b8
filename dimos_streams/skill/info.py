"""A skill as callers see it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from dimos_streams.skill.policy import SkillTraits


class _Described(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str
    parameters: dict[str, Any]


class SkillInfo(SkillTraits, _Described):
    """A skill as callers see it. ``parameters`` is a JSON Schema of the arguments' object."""
