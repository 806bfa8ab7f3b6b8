"""A skill as callers see it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dimos_streams.common.names import (
    NAME_RULE,
    PARAMETER_RULE,
    SKILL_NAME_RULE,
    is_name,
    is_parameter,
    is_skill_name,
)
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.skill.policy import SkillTraits

_SHOWN = 60
"""Maximum length of a name in an error, in characters."""


class _Described(FrozenModel):
    name: str
    description: str
    parameters: dict[str, Any]


class SkillInfo(SkillTraits, _Described):
    """A skill as callers see it. ``parameters`` is a JSON Schema of the arguments' object."""


def name_fault(skill: SkillInfo) -> str:
    """Return what is wrong with the first name in a description that can't be one; empty if there is none."""
    return next(
        (f"its {what} is {shortened(repr(name), _SHOWN)}; {rule}" for what, name, rule in _bad_names(skill)), ""
    )


def _bad_names(skill: SkillInfo) -> Iterator[tuple[str, str, str]]:
    """Yield each name that can't be one, with the part that it stands in and the rule."""
    if not is_skill_name(skill.name):
        yield "name", skill.name, SKILL_NAME_RULE
    if skill.undo and not is_skill_name(skill.undo):
        yield "undo", skill.undo, SKILL_NAME_RULE
    others = [("frame", skill.frame), *(("resource", resource) for resource in skill.resources)]
    yield from ((what, name, NAME_RULE) for what, name in others if not is_name(name))
    parameters = skill.parameters.get("properties")
    if isinstance(parameters, dict):
        yield from (("parameter", name, PARAMETER_RULE) for name in parameters if not is_parameter(name))
