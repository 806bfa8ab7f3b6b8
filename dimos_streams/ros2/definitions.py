"""Definitions of actions, in ROS's own form: the text of an ``.action`` file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from dimos_streams.errors import UserError, suggest
from dimos_streams.messages.std_msgs import Duration, Time
from dimos_streams.ros2.layout import UNBOUNDED, Primitive, RosField, RosStruct, known_struct, plain, struct_of

MAX_DEFINITION = 20_000
"""Maximum length of a definition, in characters."""
DUMMY = "structure_needs_at_least_one_member"
"""The field that ROS gives a type without fields."""

_PRIMITIVES: dict[str, Primitive] = {name: name for name in get_args(Primitive)} | {"byte": "uint8", "char": "uint8"}
_LINE = re.compile(
    r"(?P<type>[A-Za-z][\w/]*)(?:<=\d+)?(?P<array>\[(?:<=)?\d*\])?\s+(?P<name>[A-Za-z]\w*)\s*(?P<rest>.*)"
)
_KINDS = ("goal", "result", "feedback")
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class ActionType:
    """The type of an action; its values are plain dicts."""

    name: str
    """``"nav2_msgs/action/NavigateToPose"``."""
    goal: RosStruct
    results: tuple[RosStruct, ...]
    """The forms of a result, depending on the release of ROS: the first that fits counts."""
    feedback: RosStruct


def action_type(name: str, definition: str, types: Mapping[str, str]) -> ActionType:
    """The type of an action by its definition; ``types`` defines those that it uses and that are not known.

    Raises ``UserError`` that names the line.
    """
    parts = re.split(r"^[ \t]*---[ \t]*$", definition, flags=re.MULTILINE)
    if len(parts) != len(_KINDS):
        raise UserError(
            f"the definition of {name} has {len(parts)} parts, not goal, result and feedback between '---'"
        )
    goal, result, feedback = (
        _parsed(f"{name}_{kind.capitalize()}", text, types, 0) for kind, text in zip(_KINDS, parts, strict=True)
    )
    return ActionType(name, goal, (result,), feedback)


def _parsed(name: str, text: str, types: Mapping[str, str], depth: int) -> RosStruct:
    if depth > _MAX_DEPTH:
        raise UserError(f"{name}: types are nested more than {_MAX_DEPTH} deep, or in themselves")
    fields = tuple(
        field
        for number, line in enumerate(text.splitlines(), 1)
        if (field := _field(name, line.partition("#")[0].strip(), number, types, depth)) is not None
    )
    names = [field.name for field in fields]
    for field_name in names:
        if names.count(field_name) > 1:
            raise UserError(f"{name}: {field_name!r} is defined twice")
    return RosStruct(name, fields or (RosField(DUMMY, "uint8"),))


def _field(owner: str, line: str, number: int, types: Mapping[str, str], depth: int) -> RosField | None:
    """The field of a line, or None for an empty line or a constant."""
    if not line:
        return None
    found = _LINE.fullmatch(line)
    if found is None:
        raise UserError(f"{owner}, line {number}: {line[:80]!r} is not of the form 'type name'")
    if found["rest"].startswith("="):
        return None
    array = found["array"]
    size = None if array is None else UNBOUNDED if array == "[]" or "<" in array else int(array[1:-1])
    try:
        return RosField(found["name"], _type(found["type"], owner.split("/")[0], types, depth), size)
    except UserError as error:
        raise UserError(f"{owner}, line {number}: {error}") from error


def _type(name: str, package: str, types: Mapping[str, str], depth: int) -> Primitive | RosStruct:
    if name in _PRIMITIVES:
        return _PRIMITIVES[name]
    parts = name.split("/")
    full = "std_msgs/msg/Header" if name == "Header" else f"{parts[0] if parts[1:] else package}/msg/{parts[-1]}"
    if full in types:
        return _parsed(full, types[full], types, depth + 1)
    known = _BEYOND.get(full) or known_struct(full)
    if known is None:
        near = suggest(name, [*_PRIMITIVES, *types]) or "; types that it uses and that are not known go into 'types'"
        raise UserError(f"{full} is no known type{near}")
    return plain(known)


_BEYOND = {
    "builtin_interfaces/msg/Time": struct_of(Time),
    "builtin_interfaces/msg/Duration": struct_of(Duration),
    "std_msgs/msg/Empty": RosStruct("std_msgs/msg/Empty", (RosField(DUMMY, "uint8"),)),
}
"""Types of ROS whose LCM definitions have other names, or that have none."""

NAVIGATE_TO_POSE = "nav2_msgs/action/NavigateToPose"
_NAVIGATION = """
geometry_msgs/PoseStamped pose
string behavior_tree
---
{result}
---
geometry_msgs/PoseStamped current_pose
builtin_interfaces/Duration navigation_time
builtin_interfaces/Duration estimated_time_remaining
int16 number_of_recoveries
float32 distance_remaining
"""
_RESULTS = ("uint16 error_code\nstring error_msg", "uint16 error_code", "std_msgs/Empty result")
"""The results of navigation, newer releases first; before Iron the result was empty."""


def known_action(name: str) -> ActionType | None:
    """An action type that needs no definition, or None for others."""
    if name != NAVIGATE_TO_POSE:
        return None
    types = [action_type(name, _NAVIGATION.format(result=result), {}) for result in _RESULTS]
    return ActionType(name, types[0].goal, tuple(each.results[0] for each in types), types[0].feedback)
