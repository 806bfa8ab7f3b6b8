"""The defaults of a skill's schema for what a call leaves out: a call that spells a default out is the same call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams.errors import SkillArgumentError
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.arguments.schemas import arguments_size, check_arguments, check_size, too_many_steps
from dimos_streams.tool_stream.arguments.steps import CHARACTERS_PER_STEP, TooManyStepsError, limited_steps, spend

_MAX_HOPS = 64
"""Maximum number of steps from one ``$ref`` to the next: a schema that nobody has checked may go in circles."""


def checked_arguments(skill: SkillInfo, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with the defaults of those left out. A default that does not fit its own schema is
    ignored.

    Raises ``SkillError``, see ``check_arguments``.
    """
    check_arguments(skill, arguments)
    try:
        filled = _with_defaults(skill.parameters, arguments)
    except TooManyStepsError:
        raise too_many_steps(skill.name) from None
    if filled == arguments:
        return filled
    check_size(skill.name, arguments_size(filled))
    try:
        check_arguments(skill, filled)
    except SkillArgumentError as error:
        unfit = {path.partition(".")[0] for path in error.problems}
        fit = {name: value for name, value in filled.items() if name not in unfit}
        return fit | {name: value for name, value in arguments.items() if name in unfit}
    return filled


def with_defaults(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments, whether they fit or not, with a schema's defaults, also in objects and lists within them; as
    they are if that takes more than ``MAX_STEPS``: no such call is made."""
    try:
        return _with_defaults(parameters, arguments)
    except TooManyStepsError:
        return dict(arguments)


def _with_defaults(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    with limited_steps():
        filled: dict[str, Any] = _filled(parameters, parameters, dict(arguments))
    return filled


def _filled(schema: Any, root: Mapping[str, Any], value: Any) -> Any:
    """Return a value with the defaults within it. Lists multiply those of the lists within them, so that each value
    counts, and the length of its text: a long one may stand in many places."""
    spend(1 + len(value) // CHARACTERS_PER_STEP if isinstance(value, str) else 1)
    if isinstance(value, Mapping):
        properties = _of_objects(schema, root).get("properties")
        known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        spend(len(known))
        filled = {name: _filled(known.get(name), root, part) for name, part in value.items()}
        for name, part in known.items():
            if name not in filled and isinstance(part, Mapping) and "default" in part:
                filled[name] = _filled(part, root, part["default"])
        return filled
    if isinstance(value, list | tuple):
        items = _resolved(schema, root).get("items")
        return [_filled(items, root, part) for part in value]
    return value


def _of_objects(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a schema that is about objects, if exactly one of several is; else the whole."""
    found = _resolved(schema, root)
    for word in ("anyOf", "oneOf", "allOf"):
        parts = found.get(word)
        if isinstance(parts, list):
            spend(len(parts))
            objects = [part for part in (_resolved(each, root) for each in parts) if "properties" in part]
            if len(objects) == 1 and "properties" not in found:
                return objects[0]
    return found


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a schema refers to, or an empty one if there is none."""
    for _ in range(_MAX_HOPS):
        if not isinstance(schema, Mapping):
            break
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = root
        spend(1 + len(reference) // CHARACTERS_PER_STEP)
        for part in reference.removeprefix("#/").split("/"):
            schema = schema.get(part) if isinstance(schema, Mapping) else None
    return {}
