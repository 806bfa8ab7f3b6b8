"""The settings that a config class has, through the models and dataclasses inside it."""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel


def fields_at(kind: Any, path: Sequence[str | int]) -> dict[str, Any]:
    """The names and types of the fields found at ``path`` inside ``kind``; empty where there are none to name.

    A part of the path may be the index of an item, or a key of a mapping."""
    for name in path:
        kind = _inside(kind, str(name))
    return _fields(kind)


def paths_called(kind: Any, name: str, above: tuple[Any, ...] = ()) -> Iterator[str]:
    """Yield where fields of a name are in ``kind`` and in the models inside it, as in ``limits.max_tokens``; what is
    in lists and mappings has no such path."""
    fields = _fields(kind)
    if name in fields:
        yield name
    for part, inside in fields.items():
        if inside not in above:  # a model that contains itself has no end
            yield from (f"{part}.{path}" for path in paths_called(inside, name, (*above, inside)))


def takes_null(kind: Any, path: Sequence[str]) -> bool:
    """Return whether what is found at ``path`` inside ``kind`` may be None."""
    for name in path:
        kind = _inside(kind, name)
    return types.NoneType in options_of(kind)


def spelled(kind: Any, path: Sequence[str]) -> tuple[str, ...]:
    """A path with the upper and lower case of the fields that it means; parts that mean none stay as they are."""
    found: list[str] = []
    for part in path:
        match = [name for name in fields_at(kind, found) if name.lower() == part.lower()]
        found.append(match[0] if match else part)
    return tuple(found)


def _fields(kind: Any) -> dict[str, Any]:
    for option in options_of(kind):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return {name: field.annotation for name, field in option.model_fields.items()}
        if isinstance(option, type) and dataclasses.is_dataclass(option):
            return dict(typing.get_type_hints(option))
    return {}


def _inside(kind: Any, name: str) -> Any:
    """The type of a field, of an item of a list, or of a value of a mapping, or None if there is none to name."""
    fields = _fields(kind)
    if name in fields:
        return fields[name]
    for option in options_of(kind):
        origin, arguments = typing.get_origin(option), typing.get_args(option)
        if origin in (list, tuple, collections.abc.Sequence) and arguments and name.isdecimal():
            each = len(arguments) == 1 or arguments[-1] is Ellipsis
            return arguments[0] if each else arguments[min(int(name), len(arguments) - 1)]
        if origin in (dict, collections.abc.Mapping) and len(arguments) == 2:
            return arguments[1]
    return None


def options_of(kind: Any) -> tuple[Any, ...]:
    """The members of a union, or the type itself; without what is annotated."""
    if typing.get_origin(kind) is typing.Annotated:
        return options_of(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return tuple(option for member in typing.get_args(kind) for option in options_of(member))
    return (kind,)
