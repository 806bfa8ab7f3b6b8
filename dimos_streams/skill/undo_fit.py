"""The check that the skill that undoes a call accepts the arguments that it is given for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dimos_streams.skill.spec import SkillSpec

_GIVEN = ("arguments", "result")
_CALL_ID = "call_id"
_RULE = "it gets the call's arguments, an object, and its result, null if there is none, and call_id if it has that"
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def check_undo(where: str, skill: SkillSpec, undo: SkillSpec) -> None:
    """Raise ``TypeError`` if calls of a skill can't be taken back by the one that it names."""
    why = _why_not(skill, undo)
    if why is not None:
        raise TypeError(f"{where}: {undo.name!r} can't undo it: {why} ({_RULE})")


def _why_not(skill: SkillSpec, undo: SkillSpec) -> str | None:
    schema = undo.parameters.schema()
    taken: Mapping[str, Any] = schema["properties"]
    for name in _GIVEN:
        if name not in taken:
            return f"it has no parameter {name!r}"
    for name in schema.get("required", ()):
        if name not in (*_GIVEN, _CALL_ID):
            return f"nothing is given for its parameter {name!r}"
    if _CALL_ID in taken and not _takes(taken[_CALL_ID], {"string"}):
        return f"its {_CALL_ID!r} takes {_named(taken[_CALL_ID])}, and no text"
    return _arguments_refused(skill, taken["arguments"]) or _result_refused(skill, taken["result"])


def _arguments_refused(skill: SkillSpec, taken: Mapping[str, Any]) -> str | None:
    if not _takes(taken, {"object"}):
        return f"its 'arguments' takes {_named(taken)}, and no object"
    given = skill.parameters.schema()["properties"]
    return _parts_refused(taken, given, "arguments", f"{skill.name!r}")


def _result_refused(skill: SkillSpec, taken: Mapping[str, Any]) -> str | None:
    result = skill.result_type.schema
    given = types_of(result) or frozenset()
    if not _takes(taken, {*given, "null"}):
        return f"its 'result' takes {_named(taken)}, and is given {' or '.join(sorted({*given, 'null'}))}"
    return _parts_refused(_object(taken), _object(result).get("properties"), "result", f"that of {skill.name!r}")


def _parts_refused(
    taken: Mapping[str, Any], given: Mapping[str, Any] | None, parameter: str, giver: str
) -> str | None:
    """Return why a parameter does not take an object of these properties; None if it does, or if they are not
    known."""
    if given is None:
        return None
    parts: Mapping[str, Any] = taken.get("properties", {})
    for name in taken.get("required", ()):
        if name not in given:
            return f"its {parameter!r} needs {name!r}, which {giver} has not"
    for name, part in given.items():
        if name not in parts:
            if taken.get("additionalProperties") is False:
                return f"its {parameter!r} takes no {name!r}, which {giver} has"
        elif not _takes(parts[name], set(types_of(part) or ())):
            return f"the {name!r} of its {parameter!r} takes {_named(parts[name])}, and is given {_named(part)}"
    return None


def _object(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a schema that is about objects, if it is one part; else one that says nothing."""
    found = [part for part in schema.get("anyOf", [schema]) if "properties" in part]
    return found[0] if len(found) == 1 else {}


def _takes(schema: Mapping[str, Any], given: set[str]) -> bool:
    """Return whether a parameter takes values of all these types."""
    types = types_of(schema)
    return types is None or all(one in types or (one == "integer" and "number" in types) for one in given)


def types_of(schema: Mapping[str, Any]) -> frozenset[str] | None:
    """The types of JSON that a schema allows, or None if it does not say."""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            parts = [types_of(part) for part in schema[key]]
            return None if None in parts else frozenset().union(*(part for part in parts if part is not None))
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else ())
    if values:
        return frozenset(_JSON_TYPES.get(type(value), "object") for value in values)
    stated = schema.get("type")
    return None if stated is None else frozenset([stated] if isinstance(stated, str) else stated)


def _named(schema: Mapping[str, Any]) -> str:
    return " or ".join(sorted(types_of(schema) or ()))
