"""The check that generated classes are what their definitions say, where the definitions stand beside them."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dimos_streams.common.importing import generate_command
from dimos_streams.errors import UserError
from dimos_streams.messages.base import Message, fields_of
from dimos_streams.messages.generation.definitions import LcmGenError, Struct, line_of, read_definitions
from dimos_streams.messages.plain_classes import class_of


@dataclass(frozen=True, slots=True)
class Stale:
    """A class that its definition does not fit, or a definition that is wrong."""

    text: str
    where: str
    """``file:line`` of the definition."""


def stale_types(classes: Iterable[type[Message]]) -> list[Stale]:
    """Return those of these classes, and of the ones inside them, whose definition beside them has changed.

    Classes without a definition beside them, as this package's and plain ones of lcm-gen, have nothing to be behind.
    Raises ``LcmGenError`` if there is no lcm-gen to look with.
    """
    folders: dict[Path, list[type[Message]]] = defaultdict(list)
    for cls in _with_parts(classes):
        source = _definition(cls)
        if source is not None:
            folders[source.parents[1]].append(cls)
    found: list[Stale] = []
    for folder, members in sorted(folders.items()):
        try:
            structs = {struct.full_name: struct for struct in read_definitions(folder, "definitions")}
        except LcmGenError:
            raise
        except UserError as error:
            found += [_placed(line) for line in str(error).splitlines()]
            continue
        found += [_stale(structs[cls.msg_name], why) for cls in members if (why := _difference(cls, structs))]
    return found


def _with_parts(classes: Iterable[type[Message]]) -> list[type[Message]]:
    found: dict[type[Message], None] = {}
    waiting = list(classes)
    while waiting:
        cls = waiting.pop()
        if cls not in found:
            found[cls] = None
            waiting += [class_of(field) for field in fields_of(cls) if field.is_message]
    return sorted(found, key=lambda cls: cls.msg_name)


def _definition(cls: type[Message]) -> Path | None:
    if "_plain" in vars(cls):
        return None
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    source = Path(file).with_suffix(".lcm") if file else None
    return source if source is not None and source.exists() else None


def _difference(cls: type[Message], structs: dict[str, Struct]) -> tuple[str, str] | None:
    """The name of the first field or constant that differs, and how."""
    struct = structs[cls.msg_name]
    defined = {field.name: (field.type, field.size) for field in struct.fields}
    generated = {field.name: (field.type, field.size) for field in fields_of(cls)}
    for name in defined:
        if defined[name] != generated.get(name):
            return name, "is not in the generated class" if name not in generated else "is of another type there"
    for name in generated:
        if name not in defined:
            return name, "is in the generated class only"
    if list(defined) != list(generated):
        return next(a for a, b in zip(defined, generated, strict=True) if a != b), "has another place there"
    for name, value in struct.constants.items():
        if getattr(cls, name, None) != value:
            return name, f"is not {value} in the generated class"
    return None


def _stale(struct: Struct, why: tuple[str, str]) -> Stale:
    name, what = why
    line = line_of(struct.source, rf"\b{name}\s*[;=\[,]")
    text = f"{struct.full_name}: {name!r} {what}: run {generate_command(struct.source.parents[1])}"
    return Stale(text, f"{struct.source}:{line}")


def _placed(line: str) -> Stale:
    """An error of a definition, which begins with its place."""
    where, colon, text = line.partition(": ")
    return Stale(text, where) if colon else Stale(line, "")
