"""The check of arguments against the schemas that modules publish, which come from outside: all work on them is
bounded."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any

from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.writing import json_bytes
from dimos_streams.common.readable.json_cut import cut_to
from dimos_streams.common.schemas.references import MAX_PARTS, resolved
from dimos_streams.errors import SkillArgumentError, SkillError
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.arguments.faults import fault, fault_of_options
from dimos_streams.tool_stream.arguments.schema_form import check_form
from dimos_streams.tool_stream.arguments.steps import MAX_STEPS, TooManyStepsError
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS, MAX_ARGUMENTS_DEPTH

_MAX_DEPTH = 64
_FOREIGN_REFS = ("$dynamicRef", "$recursiveRef")
_LARGEST = sys.float_info.max
_MAX_PROBLEM = 500
_MAX_PROBLEMS, _MAX_PATH, _MAX_VALID = 20, 200, 2000
"""Maximum number of fields that are named, and lengths, in characters, of each and of the list of valid ones: models
and callers see them."""


def check_schema(schema: dict[str, Any]) -> None:
    """Raise ``ValueError`` for a schema that can't be that of arguments, or that would make checks of them endless.

    The first is one that does not describe an object, or is of another version of JSON Schema. The second refers to
    other schemas or to itself, or becomes too large when each ``$ref`` is replaced by what it refers to."""
    if (kind := schema.get("type", "object")) != "object":
        raise ValueError(f"it describes no object with properties: its type is {kind!r:.50}")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or not all(isinstance(part, dict | bool) for part in properties.values()):
        raise ValueError("it describes no object with properties: they are not names with their schemas")
    nodes = _Expansion(schema).nodes(schema, 0)
    if nodes > MAX_PARTS:
        raise ValueError(f"with each $ref put in it has more than {MAX_PARTS} parts")
    check_form(schema)


def check_arguments(skill: SkillInfo, arguments: Mapping[str, Any]) -> None:
    """Raise ``SkillArgumentError``, naming each bad field, if arguments do not fit a skill's schema, or no request.

    Every door comes here before anybody is asked about a call.
    """
    from dimos_streams.tool_stream.arguments.bounded_validator import errors_of

    check_depth(skill.name, arguments)
    if too_large := dict(_too_large(arguments)):
        raise SkillArgumentError(skill.name, too_large)
    try:
        check_schema(skill.parameters)
        errors = errors_of(skill.parameters, arguments)
    except TooManyStepsError:
        raise too_many_steps(skill.name) from None
    except ValueError as error:
        raise _unusable(skill.name, str(error)) from error
    except Exception as error:  # the schema comes from outside, and anything may be wrong with it
        why = " ".join(str(error).split())
        raise _unusable(skill.name, f"it is not valid in JSON Schema 2020-12 ({why})") from error
    problems: dict[str, str] = {}
    for found in errors:
        path = ".".join(str(part) for part in found.absolute_path)
        for name, problem in islice(_explain(found, path), _MAX_PROBLEMS):
            problems.setdefault(name[:_MAX_PATH], problem)
        if len(problems) >= _MAX_PROBLEMS:
            break
    if problems:
        raise SkillArgumentError(skill.name, dict(islice(problems.items(), _MAX_PROBLEMS)))
    check_size(skill.name, arguments_size(arguments))  # last: an argument that does not belong there says more


def _unusable(skill: str, why: str) -> SkillError:
    return SkillError(f"the schema of skill {skill!r} can't be used: {why}"[:_MAX_PROBLEM])


def too_many_steps(skill: str) -> SkillArgumentError:
    """The error for arguments that take more than ``MAX_STEPS``."""
    problem = f"to check them takes more than {MAX_STEPS} steps: give fewer values, or shorter lists"
    return SkillArgumentError(skill, {"arguments": problem})


def arguments_size(arguments: Mapping[str, Any]) -> int:
    """The bytes that arguments take in a request on the bus."""
    return len(json_bytes(arguments))


def check_size(skill: str, size: int) -> None:
    """Raises ``SkillArgumentError`` for arguments of more bytes than a request on the bus can carry."""
    if size > MAX_ARGUMENTS:
        raise SkillArgumentError(skill, {"arguments": f"they have {size} bytes, {MAX_ARGUMENTS} are possible"})


def check_depth(skill: str, arguments: Mapping[str, Any]) -> None:
    """Raise ``SkillArgumentError`` for arguments that are nested deeper than a call's may be."""
    if is_deeper(json_bytes(arguments), MAX_ARGUMENTS_DEPTH):
        problem = f"they are nested more than {MAX_ARGUMENTS_DEPTH} deep"
        raise SkillArgumentError(skill, {"arguments": problem})


def _too_large(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the numbers that no robot reckons with: JSON has integers of any length, a double only so large ones.
    What a gate of a user's gives may be no number at all. Paths are cut as they grow: a long name is in those of all
    values below it."""
    left: list[tuple[str, Any]] = [(name[:_MAX_PATH], value) for name, value in arguments.items()]
    problems = 0
    while left and problems < _MAX_PROBLEMS:
        path, value = left.pop()
        if isinstance(value, dict):
            left += [(f"{path}.{name}"[:_MAX_PATH], part) for name, part in value.items()]
        elif isinstance(value, list | tuple):
            left += [(f"{path}.{index}"[:_MAX_PATH], part) for index, part in enumerate(value)]
        elif isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
            problems += 1
            yield path, f"{Decimal(value):.3e} is too large: a number is at most {_LARGEST:.3e}"
        elif isinstance(value, float) and not math.isfinite(value):
            problems += 1
            yield path, f"it must be a finite number (given: {value})"


class _Expansion:
    """A count of a schema's parts with each ``$ref`` put in. It is linear: what is referred to is counted once."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._counted: dict[str, int] = {}
        self._under_way: set[str] = set()

    def nodes(self, value: object, depth: int) -> int:
        if depth > _MAX_DEPTH:
            raise ValueError(f"it is nested more than {_MAX_DEPTH} deep")
        if isinstance(value, list):
            return 1 + sum(self.nodes(item, depth + 1) for item in value)
        if not isinstance(value, dict):
            return 1
        if any(isinstance(value.get(name), str) for name in _FOREIGN_REFS):
            raise ValueError(f"it has a {' or '.join(_FOREIGN_REFS)}; only $ref is understood")
        reference = value.get("$ref")
        referred = self._referred(reference, depth) if isinstance(reference, str) else 0
        return 1 + referred + sum(self.nodes(item, depth + 1) for item in value.values())

    def _referred(self, reference: str, depth: int) -> int:
        if reference in self._under_way:
            raise ValueError(f"its $ref {reference[:100]!r} contains itself")
        if reference not in self._counted:
            self._under_way.add(reference)
            self._counted[reference] = self.nodes(resolved(self._root, reference), depth + 1)
            self._under_way.remove(reference)
        return self._counted[reference]


def _explain(error: Any, path: str) -> Iterator[tuple[str, str]]:
    """Return fields and what is wrong with them, where the validator only names the object around them."""
    prefix = f"{path}." if path else ""
    if error.validator == "required":
        missing = (name for name in error.validator_value if name not in error.instance)
        yield from ((f"{prefix}{name}", "is missing") for name in missing)
    elif error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known = error.schema.get("properties", {})
        valid = cut_to(", ".join(known) or "none", _MAX_VALID)
        unknown = (name for name in error.instance if name not in known)
        yield from ((f"{prefix}{name}", f"is not an argument of this skill (valid: {valid})") for name in unknown)
    elif error.validator in ("anyOf", "oneOf") and error.context:
        yield from _explain_options(error, path)
    else:
        yield path or "arguments", fault(error)


def _explain_options(error: Any, path: str) -> Iterator[tuple[str, str]]:
    """Return what is wrong with a value that fits none of several schemas: its faults by the only one that is for
    values of its type, and which types the others are for."""
    options: dict[Any, list[Any]] = {}
    for found in error.context:
        options.setdefault(found.relative_schema_path[0], []).append(found)
    of_its_type = [each for each in options.values() if not any(map(_is_of_type, each))]
    types = (found.validator_value for each in options.values() for found in each if _is_of_type(found))
    names = dict.fromkeys(name for each in types for name in ([each] if isinstance(each, str) else each))
    whole = path or "arguments"
    if len(of_its_type) != 1:
        yield whole, fault_of_options([each[0] for each in of_its_type], names, error.instance)
        return
    for found in of_its_type[0]:
        for name, problem in _explain(found, ".".join(map(str, found.absolute_path))):
            yield name, fault_of_options([found], names, error.instance) if name == whole else problem


def _is_of_type(error: Any) -> bool:
    """Return whether an error is about the type of a value as a whole."""
    return bool(error.validator == "type" and not error.relative_path)
