"""A skill as callers see it."""

from __future__ import annotations

from typing import Any

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.skill.policy import SkillTraits


class _Described(FrozenModel):
    name: str
    description: str
    parameters: dict[str, Any]


class SkillInfo(SkillTraits, _Described):
    """A skill as callers see it. ``parameters`` is a JSON Schema of the arguments' object."""
