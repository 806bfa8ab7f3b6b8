"""Skills as people read them: in a list, or all that one states of itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dimos_streams.cli.terminal.argument_schemas import arguments_of, options_of, part_of
from dimos_streams.cli.terminal.output import UNBOUNDED, table_lines
from dimos_streams.common.readable.listed import listed
from dimos_streams.common.readable.shortening import at_most

if TYPE_CHECKING:
    from dimos_streams.skill.policy import SkillTraits
    from dimos_streams.tool_stream.gateway import OfferedSkill

_LEAST_USAGE = 28
"""The fewest characters of the column of names and arguments in a list."""
_DESCRIPTION = 70
"""The characters that are left for descriptions before that column may be wider."""
_DEEPEST = 4
"""How deep the parts of an argument are shown."""
_INDENT = "  "
_IN_FRAME = ("x", "y")
"""The arguments that are in a skill's frame."""
_SECOND_CALLS = {
    "allow": "it runs beside the first, if that leaves it what it holds",
    "reject": "it is refused",
    "replace": "it takes the place of the first",
    "confirm": "it is refused until the caller chooses, with --on-duplicate for example",
}
_ON_LOSS = {"stop": "a call that moves the robot ends", "continue": "the call goes on"}


def list_lines(skills: Iterable[OfferedSkill], width: int = UNBOUNDED) -> list[str]:
    """Return skills in lines of that width, by their modules: name, arguments, and the beginning of the description,
    which stands below a name and arguments that are longer than their column."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for skill in skills:
        owner = _owner(skill) if skill.available else f"{_owner(skill)}: does not answer"
        groups.setdefault(owner, []).append((_usage(skill), _summary(skill)))
    longest = max((len(usage) for group in groups.values() for usage, _ in group), default=0)
    column = min(longest, max(_LEAST_USAGE, width - _DESCRIPTION))
    lines: list[str] = []
    for owner, group in groups.items():
        lines.append(owner)
        for usage, description in group:
            room = width - column - 2 * len(_INDENT)
            shown = at_most(description, room) if room > 0 else ""
            if len(usage) > column:
                lines.append(f"{_INDENT}{usage}")
                usage = ""
            lines.append(f"{_INDENT}{usage:{column}}{_INDENT}{shown}".rstrip())
    return [line for line in lines if line]


def skill_lines(skill: OfferedSkill, width: int = UNBOUNDED) -> list[str]:
    """Return all that is known of a skill, in lines of that width as far as its tables go."""
    width -= len(_INDENT)
    arguments = list(_arguments(skill.parameters))
    parts = (
        skill.description.splitlines(),
        table_lines([("ARGUMENT", "TYPE", "DEFAULT", ""), *arguments], width) if arguments else ["no arguments"],
        table_lines(list(_traits(skill)), width),
    )
    lines = [skill.name]
    for part in parts:
        lines += [*(f"{_INDENT}{line}".rstrip() for line in part), ""]
    return lines[:-1]


def moving(skill: SkillTraits) -> str:
    """Say whether a call of a skill moves the robot, or may for what it holds."""
    if skill.moves:
        return "yes"
    return f"may (holds {listed(skill.resources)})" if skill.may_move else "no"


def signature(schema: Mapping[str, Any]) -> str:
    """``"description: string, timeout_s: number = 120.0"`` for the JSON Schema of a skill's arguments."""
    return ", ".join(_parameter(name, part) for name, part in arguments_of(schema).items())


def _owner(skill: OfferedSkill) -> str:
    agent = ", an agent" if skill.agent else ""
    return f"{skill.module}{agent}" if skill.robot is None else f"{skill.module} of {skill.robot}{agent}"


def _usage(skill: OfferedSkill) -> str:
    """``"go_to x y [timeout_s]"``: what a call takes, and in brackets what it may take."""
    needed = skill.parameters.get("required", ())
    names = skill.parameters.get("properties", {})
    return " ".join([skill.name, *(name if name in needed else f"[{name}]" for name in names)])


def _summary(skill: OfferedSkill) -> str:
    """The first paragraph of its description, in a line."""
    return " ".join(skill.description.partition("\n\n")[0].split())


def _traits(skill: OfferedSkill) -> Iterator[tuple[str, str]]:
    """Yield what a skill states of itself besides its arguments, each with what it means."""
    yield "module", _owner(skill)
    if skill.shadowed:
        others = listed([each.module for each in skill.shadowed])
        yield "offered, too", f"by {others}, whose skill is not called as long as this one is"
    yield "available", "yes" if skill.available else "no: the module does not answer"
    yield "moves the robot", moving(skill)
    placed = [name for name in _IN_FRAME if name in skill.parameters.get("properties", {})]
    if skill.may_move and placed:
        yield "frame", f"{skill.frame}, of {listed(placed)}"
    yield "holds", listed(skill.resources) if skill.resources else "nothing"
    yield "approval", "ask: an operator is asked if a model calls it" if skill.approval == "ask" else skill.approval
    yield "for", skill.audience
    yield "tags", " ".join(skill.tags) or "none"
    alike = " with equal arguments" if skill.duplicate_scope == "arguments" else ""
    kept = ", but never that of the first" if skill.protected else ""
    yield f"a second call{alike}", f"{skill.on_duplicate}: {_SECOND_CALLS[skill.on_duplicate]}{kept}"
    yield "a cut link", f"{skill.on_loss}: {_ON_LOSS[skill.on_loss]}"
    undone = f"by {skill.undo}" if skill.undo else "by other calls, not by `undo`"
    yield "taken back", undone if skill.reversible else "by nothing"
    yield "changes nothing", _yes(skill.read_only)
    yield "only senses", _yes(skill.concurrent)
    yield "often repeated", _yes(skill.polling)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _arguments(schema: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each argument, and of the parts of those that are objects."""
    needed = part_of(schema).get("required", ())
    for name, part in arguments_of(schema).items():
        default = json.dumps(part["default"], ensure_ascii=False) if "default" in part else ""
        described = " ".join(str(part.get("description", "")).split())
        yield f"{path}{name}", _limited_type(part), "required" if name in needed else default, described
        if depth < _DEEPEST:
            for inner, mark in _objects_in(part):
                yield from _arguments(inner, f"{path}{name}{mark}.", depth + 1)


def _objects_in(part: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the schemas of objects that an argument may be, or consist of, each with the mark of a list."""
    for option in options_of(part) or [part]:
        items = part_of(option.get("items"))
        if "properties" in option:
            yield option, ""
        elif "properties" in items:
            yield items, "[]"


def _limited_type(part: Mapping[str, Any]) -> str:
    """Return the type of an argument, with what else its value must be."""
    from dimos_streams.tool_stream.arguments.faults import limits

    if "title" not in part and (options := options_of(part)):
        return " | ".join(map(_limited_type, options))
    places = len(part.get("prefixItems", ()))
    is_said = "const" in part or part.get("minItems") == part.get("maxItems") == places
    limited = "" if is_said else ", ".join(limits(part))
    return f"{_type(part)} ({limited})" if limited else _type(part)


def _parameter(name: str, part: Mapping[str, Any]) -> str:
    default = f" = {json.dumps(part['default'], ensure_ascii=False)}" if "default" in part else ""
    return f"{name}: {_type(part)}{default}"


def _type(part: Mapping[str, Any]) -> str:
    if "enum" in part:  # of a class, too: its values are what one gives
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in part["enum"])
    if "title" in part:
        return str(part["title"])
    if "$ref" in part:  # one that leads nowhere
        return str(part["$ref"]).rpartition("/")[2]
    if "const" in part:
        return json.dumps(part["const"])
    if options := options_of(part):
        return " | ".join(map(_type, options))
    if places := part.get("prefixItems"):
        return f"[{', '.join(_type(part_of(place)) for place in places)}]"
    if part.get("type") == "array":
        return f"array of {_type(part_of(part.get('items')))}"
    if part.get("type") == "object" and (each := part_of(part.get("additionalProperties"))):
        return f"object of {_type(each)}"
    return str(part.get("type", "any"))
